//go:build kubernetes

package plane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Labels by which a Job is Kueue's: its queue, its priority class (see Queue and QueuePriority), and how many seconds it may run once it
// is admitted.
const (
	QueueLabel    = "kueue.x-k8s.io/queue-name"
	PriorityLabel = "kueue.x-k8s.io/priority-class"
	MaxExecution  = "kueue.x-k8s.io/max-exec-time-seconds"
)

// MIG1Class is a class of the smallest MIG devices alone, which Classes makes. MIG1Quota and GPUQuota are the names by which a Queue
// counts claims of MIG1Class and of GPUClass: Kueue reads no selectors.
const (
	GPUQuota  = "devices.plane.test/gpu"
	MIG1Class = "mig-1g.10gb.nvidia.com"
	MIG1Quota = "devices.plane.test/mig-1g.10gb"
)

// Workloads are Kueue's, for a dynamic client.
//
//nolint:gochecknoglobals // read-only by use
var Workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2",
	Resource: "workloads"}

// Queue is a ClusterQueue of Kueue, and a LocalQueue of its name in each of its namespaces.
type Queue struct {
	Name       string
	Namespaces []string
	// Quota is what is its own of each resource that its Jobs ask for: "nvidia.com/mig-1g.10gb", or MIG1Quota for claims of MIG1Class.
	Quota map[string]int64
	// Cohort: it lends what it leaves to other queues of that name, and borrows what they leave. Reclaims: it takes back what is lent, and
	// what of lower priority it admitted itself, by preemption.
	Cohort   string
	Reclaims bool
}

// Queue makes a queue, which goes with the test, and returns when it admits. The plane has to have Kueue.
func (p *Plane) Queue(t testing.TB, q Queue) {
	t.Helper()
	var resources []string
	for _, name := range slices.Sorted(maps.Keys(q.Quota)) {
		resources = append(resources, fmt.Sprintf("{name: %q, nominalQuota: %d}", name, q.Quota[name]))
	}
	covered := slices.Sorted(maps.Keys(q.Quota))
	rest := ""
	if q.Cohort != "" {
		rest += "\n  cohortName: " + q.Cohort
	}
	if q.Reclaims {
		rest += "\n  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}"
	}
	text := fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %s}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [%q], flavors: [{name: all, resources: [%s]}]}]%s
`, q.Name, strings.Join(covered, `", "`), strings.Join(resources, ", "), rest)
	for _, ns := range q.Namespaces {
		text += fmt.Sprintf("---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: %s, namespace: %s}\nspec: "+
			"{clusterQueue: %s}\n", q.Name, ns, q.Name)
	}
	p.make(t, text)
	Eventually(t, "queue "+q.Name+" admits", func() (bool, string) {
		o, err := dynamic.NewForConfigOrDie(p.admin).Resource(Workloads.GroupVersion().WithResource("clusterqueues")).Get(
			context.Background(), q.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c, is := c.(map[string]any); is && c["type"] == "Active" && c["status"] == "True" {
				return true, ""
			}
		}
		return false, fmt.Sprint(conditions)
	})
}

// QueuePriority makes a WorkloadPriorityClass, for PriorityLabel.
func (p *Plane) QueuePriority(t testing.TB, name string, value int) {
	t.Helper()
	p.make(t, fmt.Sprintf("apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: %s}\nvalue: %d\n", name,
		value))
}

// make makes objects of Kueue, which go with the test; a flavor stays, since all queues have it.
func (p *Plane) make(t testing.TB, text string) {
	t.Helper()
	ctx, client := context.Background(), dynamic.NewForConfigOrDie(p.admin)
	all, err := documents([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		resource := client.Resource(Workloads.GroupVersion().WithResource(plural(o.GetKind()))).Namespace(o.GetNamespace())
		_, err := resource.Create(ctx, o, metav1.CreateOptions{})
		switch {
		case o.GetKind() == "ResourceFlavor" && apierrors.IsAlreadyExists(err):
		case err != nil:
			t.Fatal(err)
		case o.GetKind() != "ResourceFlavor":
			t.Cleanup(func() { _ = resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{}) }) // the plane may be stopped, or ends anyway
		}
	}
}

func plural(kind string) string {
	if kind == "WorkloadPriorityClass" {
		return "workloadpriorityclasses"
	}
	return strings.ToLower(kind) + "s"
}
