//go:build kubernetes

package operator_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/plane"
)

// TestFromTheChartToAFinishedJob: what the chart makes is applied, and the operator works under the account that it has from there, and
// under no other; the cluster's scheduler binds its Pods to a machine whose kubelet runs them as processes. So what it needs it may do: a
// call that is refused fails the job.
func TestFromTheChartToAFinishedJob(t *testing.T) {
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	s := newSite(t, p)
	const release = "sluice-system"
	if out, err := p.Kubectl("create", "namespace", release); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	chart, err := os.ReadFile("../../../tools/helm/testdata/default.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := p.KubectlWith(string(chart), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := podtest.NewWorld(t, p.Client(), "sluice", s.ns, map[string]int64{"nvidia.com/mig-1g.10gb": 2})
	s.begin(t, "a", func(o *operator.Options) {
		o.Name, o.Namespace, o.Watch = "sluice", release, ""
		o.Cluster.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + release + ":sluice",
			Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		o.Parts = operator.Kinds{Store: w.Store, ShimImage: "sluice"}.Parts(o)
	}).works(t)

	const script = `command: [sh, -c, "i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do echo unit $i | tee -a $SLUICE_OUTPUT_DIR/out; i=$((i+1)); echo '{\"progress\": '$i'}' > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; done"]`
	job := func(name string) string {
		return strings.Replace(items(name, 40, "100ms", "grace: 1s"), `command: [sh, -c, "./count.sh"]`, script, 1)
	}
	s.apply(t, job("early"))
	s.until(t, "early", "waits, for there is nothing to run on",
		func(x seen) bool { return strings.Contains(x.Reason, "no slice is usable") })
	s.apply(t, "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: mig}\nspec: {extendedResources: [{name: "+
		"nvidia.com/mig-1g.10gb}]}\n")
	s.apply(t, job("late"))
	for _, name := range []string{"early", "late"} {
		if got := s.until(t, name, "is done", done); got.Progress != "40/40" || got.State != "COMPLETED" {
			t.Errorf("%+v", got)
		}
	}
	if out, err := s.Kubectl("-n", s.ns, "delete", "--timeout=120s", "jobs.sluice.dev", "--all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	plane.Eventually(t, "nothing of it is left", func() (bool, string) {
		out, err := s.Kubectl("-n", s.ns, "get", "pods,secrets,resourceclaims", "-o", "name")
		return err == nil && !strings.Contains(out, "sluice-"), fmt.Sprint(out, err)
	})
	class, err := w.Client.SchedulingV1().PriorityClasses().Get(context.Background(), cluster.Leftover, metav1.GetOptions{})
	if err != nil || class.Value >= 0 || class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("%+v, %v", class, err)
	}
}
