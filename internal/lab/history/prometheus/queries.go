package prometheus

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/edge/cluster"
)

// Queries are what is asked of a Prometheus. Those of Pods and nodes are of such with devices alone: a cluster has many others. A filter by
// value keeps what says nothing out: a phase that a Pod is not in is a series of zeros.
func Queries() []string {
	const (
		devices = `{resource=~"nvidia_com_.*|amd_com_gpu|gpu_intel_com_.*"}`
		pods    = ` and on(uid) kube_pod_container_resource_requests` + devices
		nodes   = ` and on(node) kube_node_status_allocatable` + devices
	)
	return []string{
		`kube_pod_container_resource_requests` + devices,
		`kube_pod_init_container_resource_requests` + devices,
		`kube_pod_init_container_info{restart_policy="Always"}` + pods,
		`kube_pod_info{priority_class="` + cluster.Leftover + `"}` + pods,
		`kube_pod_status_scheduled_time` + pods,
		`kube_pod_start_time` + pods,
		`kube_pod_created` + pods,
		`kube_pod_completion_time` + pods,
		`kube_pod_status_phase{phase=~"Succeeded|Failed"} == 1` + pods,
		`kube_pod_resourceclaim_info`,
		`kube_node_status_allocatable` + devices,
		`kube_node_labels` + nodes,
		`kube_node_spec_unschedulable == 1` + nodes,
		`kube_node_status_condition{condition="Ready",status="true"} == 0` + nodes,
		`DCGM_FI_DEV_GPU_UTIL`,
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE`,
		`DCGM_FI_DEV_FB_USED`,
	}
}

// The most points of a series that Prometheus answers with, and how far apart they are by default.
const (
	MostPoints  = 11000
	DefaultStep = time.Minute
)

// Help says how to get dumps for Read: text for a terminal.
func Help() string {
	var asked strings.Builder
	for _, q := range Queries() {
		asked.WriteString("    '" + q + "' \\\n")
	}
	return fmt.Sprintf(`How to dump what a Prometheus has kept of a Kubernetes cluster (kube-state-metrics). Four weeks, a
sample each minute: a week at a time, since Prometheus gives at most %d points of a series. Set
PROM to its address. sluice forecast --prometheus $PROM --since 28d asks the same by itself.

  now=$(($(date +%%s) / 60 * 60)); for week in 4 3 2 1; do for q in \
%s  ; do curl -fsSG "$PROM/api/v1/query_range" --data-urlencode "query=$q" -d step=60 \
      -d start=$((now - week*604800)) -d end=$((now - week*604800 + 604800)); done; done | gzip > kube.json.gz

   All questions are asked for the same instants: what is missing at one is then known to be gone.
   Starts and ends are exact where kube_pod_status_scheduled_time and kube_pod_completion_time say
   them, otherwise known to the step. What kinds of GPUs there are is in kube_node_labels, if
   kube-state-metrics runs with --metric-labels-allowlist=nodes=[nvidia.com/gpu.product,nvidia.com/gpu.replicas].
   Devices of DRA claims are in none of its metrics.
`, MostPoints, asked.String())
}
