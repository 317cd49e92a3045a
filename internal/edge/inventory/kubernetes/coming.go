//go:build kubernetes

package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/quantity"
)

// coming is what a Workload of Kueue's will want when its Pods are there.
type coming struct {
	// queue is the LocalQueue it is in, and cluster the ClusterQueue whose quota it has, empty while it waits for some.
	queue, cluster string
	// since is when it got that quota; admitted: nothing else holds its Pods back.
	since    quantity.Instant
	admitted bool
	// priority and created say who is first among those that wait.
	priority int32
	created  quantity.Instant
	parts    []part
}

// part are Pods of a Workload that are alike: n of them, with claims by their names and made of templates.
type part struct {
	name              string
	n                 int
	like              *tenant
	claims, templates []string
	// flavors are what ResourceFlavors its quota is of.
	flavors []string
}

// kueueWorkload is what is read of one, in v1beta1 and v1beta2.
type kueueWorkload struct {
	Spec struct {
		PodSets []struct {
			Name     string                 `json:"name"`
			Count    int32                  `json:"count"`
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"podSets"`
		QueueName string `json:"queueName"`
		Priority  int32  `json:"priority"`
		Active    *bool  `json:"active"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Admission  struct {
			ClusterQueue string `json:"clusterQueue"`
			Sets         []struct {
				Name    string            `json:"name"`
				Count   *int32            `json:"count"`
				Flavors map[string]string `json:"flavors"`
			} `json:"podSetAssignments"`
		} `json:"admission"`
		Reclaimable []struct {
			Name  string `json:"name"`
			Count int32  `json:"count"`
		} `json:"reclaimablePods"`
	} `json:"status"`
}

// coming is what a Workload will want; nil of one that is over, or was set aside.
func (s *slimmer) coming(o *unstructured.Unstructured, l *limit) *coming {
	var w kueueWorkload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &w); err != nil {
		return nil // of a shape that is not known
	}
	if w.Spec.Active != nil && !*w.Spec.Active {
		return nil
	}
	c := &coming{queue: o.GetNamespace() + "/" + w.Spec.QueueName, priority: w.Spec.Priority, created: quantity.At(o.GetCreationTimestamp().Time)}
	for _, x := range w.Status.Conditions {
		switch is := x.Status == metav1.ConditionTrue; {
		case is && x.Type == "Finished":
			return nil
		case is && x.Type == "QuotaReserved":
			c.since, c.cluster = quantity.At(x.LastTransitionTime.Time), w.Status.Admission.ClusterQueue
		case is && x.Type == "Admitted":
			c.admitted = true
		}
	}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		p := part{name: set.Name, n: int(set.Count), like: &tenant{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}, kind: "workload", owner: l.of}}
		for _, a := range w.Status.Admission.Sets {
			if a.Name == set.Name && a.Count != nil {
				p.n = int(*a.Count)
			}
			for _, f := range a.Flavors {
				if a.Name == set.Name && !slices.Contains(p.flavors, f) {
					p.flavors = append(p.flavors, f)
				}
			}
		}
		slices.Sort(p.flavors)
		for _, r := range w.Status.Reclaimable {
			if r.Name == set.Name {
				p.n -= int(r.Count)
			}
		}
		p.like.asks = asksIn(&set.Template.Spec)
		for _, r := range set.Template.Spec.ResourceClaims {
			if r.ResourceClaimName != nil {
				p.claims = append(p.claims, o.GetNamespace()+"/"+*r.ResourceClaimName)
			}
			if r.ResourceClaimTemplateName != nil {
				p.templates = append(p.templates, o.GetNamespace()+"/"+*r.ResourceClaimTemplateName)
			}
		}
		if p.n <= 0 || len(p.like.asks)+len(p.claims)+len(p.templates) == 0 {
			continue // of no device
		}
		s.asksOf(p.like, &set.Template.Spec)
		c.parts = append(c.parts, p)
	}
	if len(c.parts) == 0 {
		return nil
	}
	return c
}

// alias is a LocalQueue, or a ResourceFlavor: what stands behind its name.
type alias struct {
	metav1.ObjectMeta
	// cluster is the ClusterQueue of a LocalQueue, nodes the labels of a ResourceFlavor's machines.
	cluster string
	nodes   map[string]string
}

// alias reads a LocalQueue or a ResourceFlavor.
func (s *slimmer) alias(o *unstructured.Unstructured) *alias {
	a := &alias{ObjectMeta: named(o)}
	a.cluster, _, _ = unstructured.NestedString(o.Object, "spec", "clusterQueue") // one of another shape has none
	a.nodes, _, _ = unstructured.NestedStringMap(o.Object, "spec", "nodeLabels")
	return a
}

// runs is for how long at most a Workload would hold what it gets now; 0: nobody knows.
func runs(o *unstructured.Unstructured) time.Duration {
	most, limited, err := unstructured.NestedInt64(o.Object, "spec", "maximumExecutionTimeSeconds")
	if err != nil || !limited {
		return 0
	}
	for _, spelt := range []string{"accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"} { // v1beta1 has it the second way
		if past, there, err := unstructured.NestedInt64(o.Object, "status", spelt); err == nil && there {
			most -= past
		}
	}
	return time.Duration(max(1, most)) * time.Second
}
