//go:build kubernetes && figures

package measure

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"sluice.dev/sluice/test/kube/plane"
)

// TestScaleFigures measures an operator at the size of a large cluster and writes docs/kubernetes.md: make kube-bench.
// SLUICE_KUBE_MACHINES and SLUICE_KUBE_JOBS make it smaller; then nothing is written.
func TestScaleFigures(t *testing.T) {
	if os.Getenv(operatorDir) != "" {
		serveOperator(t)
		return
	}
	size, page := Scale{Machines: 5000, Jobs: 10_000}, os.Getenv("SLUICE_KUBE_PAGE")
	for key, n := range map[string]*int{"SLUICE_KUBE_MACHINES": &size.Machines, "SLUICE_KUBE_JOBS": &size.Jobs} {
		if text := os.Getenv(key); text != "" {
			var err error
			if *n, err = strconv.Atoi(text); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			page = ""
		}
	}
	m := measureScale(t, size)
	if t.Failed() {
		return
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	decisions := fmt.Sprintf("%s, %s, %s", m.Steps["gate"], m.Steps["zone"], m.Steps["node"])
	text := fmt.Sprintf(
		`%d machines with %d slices of an extended resource, %d Jobs of one long subjob each, the operator a process of its own. What binds and runs its Pods is simulated; etcd, the API
server, the simulated kubelets and the operator share %d cores. Its collector is told of a limit of 1 GiB, as in a container of the chart; killed with SIGKILL it
comes back under the identity of its Pod, as a container does that is started anew, and has its lease at once.

| | |
|---|---:|
| from its start until it is ready, nothing running | %s |
| all Jobs accepted after | %s |
| all subjobs run after | %s |
| resident at most | %.0f MiB |
| 99 of 100 decisions of gate, zone and node took no longer than | %s |
| killed and started again: ready after | %s |
| counts every subjob as running after | %s |
| resident at most after that | %.0f MiB |

Every Pod was the same after the restart, and none was made anew.
`, m.Machines, pieces*m.Machines, m.Jobs, runtime.NumCPU(), seconds(m.Open), seconds(m.Submitted), seconds(m.Filled), m.Peak, decisions,
		seconds(m.Reopen), seconds(m.Again), m.After)
	t.Log("\n" + text)
	if page != "" {
		if err := plane.WritePage(page, "scale", text); err != nil {
			t.Fatal(err)
		}
	}
}
