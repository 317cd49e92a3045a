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

// kueueWorkload is what is read of a Workload, the same in v1beta1 and v1beta2.
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

// coming reads what a Workload will want; nil if it is over, deactivated, unreadable, or wants no device.
func (s *slimmer) coming(o *unstructured.Unstructured, l *jobOrWorkload) *coming {
	var w kueueWorkload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &w); err != nil {
		return nil // of an unknown shape
	}
	if w.Spec.Active != nil && !*w.Spec.Active {
		return nil
	}
	c := &coming{queue: o.GetNamespace() + "/" + w.Spec.QueueName, priority: w.Spec.Priority,
		created: quantity.At(o.GetCreationTimestamp().Time)}
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
		p := part{name: set.Name, n: int(set.Count),
			like: &pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}, kind: "workload", owner: l.of}}
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
		p.like.need.asks = asksIn(&set.Template.Spec)
		for _, r := range set.Template.Spec.ResourceClaims {
			if r.ResourceClaimName != nil {
				p.claims = append(p.claims, o.GetNamespace()+"/"+*r.ResourceClaimName)
			}
			if r.ResourceClaimTemplateName != nil {
				p.templates = append(p.templates, o.GetNamespace()+"/"+*r.ResourceClaimTemplateName)
			}
		}
		if p.n <= 0 || len(p.like.need.asks)+len(p.claims)+len(p.templates) == 0 {
			continue // it wants no device
		}
		s.asksOf(p.like, &set.Template.Spec)
		c.parts = append(c.parts, p)
	}
	if len(c.parts) == 0 {
		return nil
	}
	return c
}

// alias reads a LocalQueue or a ResourceFlavor.
func (s *slimmer) alias(o *unstructured.Unstructured) *alias {
	a := &alias{ObjectMeta: named(o)}
	a.cluster, _, _ = unstructured.NestedString(o.Object, "spec", "clusterQueue") // of an unknown shape: none
	a.nodes, _, _ = unstructured.NestedStringMap(o.Object, "spec", "nodeLabels")
	return a
}

// runs is how long a Workload would hold at most what it got now; 0: it states no maximum, or an unreadable one.
func runs(o *unstructured.Unstructured) time.Duration {
	most, limited, err := unstructured.NestedInt64(o.Object, "spec", "maximumExecutionTimeSeconds")
	if err != nil || !limited {
		return 0
	}
	for _, spelt := range []string{"accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"} { // v1beta1 misspells it
		if past, there, err := unstructured.NestedInt64(o.Object, "status", spelt); err == nil && there {
			most -= past
		}
	}
	return time.Duration(max(1, most)) * time.Second
}
