//go:build kubernetes

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	inventories "sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
)

// TestPlacesAreKeptForWhatKueueLetsCome: for a Workload that waits for quota from when on that is free, for one that has it and waits for
// an admission check from then on; and nothing is kept for it any more once its Pod is there.
func TestPlacesAreKeptForWhatKueueLetsCome(t *testing.T) {
	p, ctx := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok, plane.Kueue)), context.Background()
	const mig = "nvidia.com/mig-1g.10gb"
	p.Machine(t, "q1", map[string]int64{mig: 2})
	kueue := dynamic.NewForConfigOrDie(p.Config())
	inv, err := inventories.Open(t.Context(), inventories.Options{Client: p.Client(), Dynamic: kueue, Operator: "op",
		Pools: []inventories.Pool{{Name: "all", Resources: []inventories.Resource{{Name: mig}}}}})
	if err != nil {
		t.Fatal(err)
	}
	held := watched(t, inv)
	kept := func(what string, is func(protocol.Reservation) bool) {
		t.Helper()
		plane.Eventually(t, what, func() (bool, string) {
			said := ""
			for _, s := range held() {
				for _, h := range s.Closures {
					said += fmt.Sprintf("%s: %s from %d to %d, %s; ", s.Slice, h.Kind, h.Start, h.End, h.Source)
					if h.Kind == protocol.ForReclaim && is(h) {
						return true, ""
					}
				}
			}
			return is(protocol.Reservation{}) && !strings.Contains(said, "reclaim"), said
		})
	}
	start := func(t *testing.T, ns, name string, labels map[string]string) {
		t.Helper()
		if _, err := p.Client().BatchV1().Jobs(ns).Create(ctx, queued(name, ns, mig, labels), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	none := func(h protocol.Reservation) bool { return h.Kind == 0 }

	t.Run("what waits for quota", func(t *testing.T) {
		ns := p.Namespace(t)
		p.Queue(t, plane.Queue{Name: ns, Namespaces: []string{ns}, Quota: map[string]int64{mig: 1}})
		began := time.Now().Truncate(time.Second)
		start(t, ns, "first", map[string]string{plane.MaxExecution: "3600"})
		running(t, p, ns, "first")
		start(t, ns, "second", nil)
		kept("a place is kept for the second from the end of the first on", func(h protocol.Reservation) bool {
			return h.Start != 0 && h.Truncate && strings.HasPrefix(h.Source, "workload "+ns+"/job-second") &&
				!h.Start.Time().Before(began.Add(time.Hour)) && h.Start.Time().Before(time.Now().Add(time.Hour+2*time.Minute))
		})
		if err := p.Client().BatchV1().Jobs(ns).Delete(ctx, "first",
			metav1.DeleteOptions{PropagationPolicy: &[]metav1.DeletionPropagation{metav1.DeletePropagationBackground}[0]}); err != nil {
			t.Fatal(err)
		}
		running(t, p, ns, "second")
		kept("nothing is kept for one whose Pod is there", none)
	})

	t.Run("what waits for an admission check", func(t *testing.T) {
		ns := p.Namespace(t)
		of := func(resource string) dynamic.NamespaceableResourceInterface {
			return kueue.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: resource})
		}
		check := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
			"metadata": map[string]any{"name": ns}, "spec": map[string]any{"controllerName": "example.com/nobody"}}}
		if _, err := of("admissionchecks").Create(ctx, check, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		patch := func(resource, namespace, name, text string, sub ...string) {
			t.Helper()
			if _, err := of(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{},
				sub...); err != nil {
				t.Fatal(resource, err)
			}
		}
		now := time.Now().UTC().Format(time.RFC3339)
		patch("admissionchecks", "", ns,
			`{"status":{"conditions":[{"type":"Active","status":"True","reason":"Is","message":"","lastTransitionTime":"`+now+`"}]}}`,
			"status")
		p.Queue(t, plane.Queue{Name: ns, Namespaces: []string{ns}, Quota: map[string]int64{mig: 1}})
		patch("clusterqueues", "", ns, `{"spec":{"admissionChecksStrategy":{"admissionChecks":[{"name":"`+ns+`"}]}}}`)
		plane.Eventually(t, "the queue has its check", func() (bool, string) {
			q, err := of("clusterqueues").Get(ctx, ns, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			text := fmt.Sprint(q.Object["status"])
			return strings.Contains(text, "status:True type:Active") && q.GetGeneration() > 1, text
		})
		start(t, ns, "checked", nil)
		kept("a place is kept, and nothing is cut for it", func(h protocol.Reservation) bool {
			return h.Start == 0 && h.End == quantity.Never && !h.Truncate && strings.HasPrefix(h.Source, "workload "+ns+"/job-checked")
		})
		list, err := of("workloads").Namespace(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		patch("workloads", ns, list.Items[0].GetName(), `{"status":{"admissionChecks":[{"name":"`+ns+
			`","state":"Ready","message":"","lastTransitionTime":"`+now+`"}]}}`, "status")
		running(t, p, ns, "checked")
		kept("nothing is kept for one whose Pod is there", none)
	})
}
