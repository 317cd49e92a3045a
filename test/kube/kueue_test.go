//go:build kubernetes

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
	inventories "sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
)

// queued is a Job of a queue whose one Pod has one of a resource, or a claim of the smallest MIG devices where that is plane.MIG1Quota. It
// runs until it is told to end.
func queued(name, queue, of string, labels map[string]string) *batchv1.Job {
	yes, one := true, resource.MustParse("1")
	pod := filler("").Spec
	if of == plane.MIG1Quota {
		template := "piece"
		pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "piece", ResourceClaimTemplateName: &template}}
		pod.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "piece"}}
	} else {
		pod.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(of): one}
	}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{plane.QueueLabel: queue}},
		Spec: batchv1.JobSpec{Suspend: &yes, Template: corev1.PodTemplateSpec{Spec: pod}}}
	maps.Copy(j.Labels, labels)
	return j
}

// running waits for the Pod of a Job to run.
func running(t *testing.T, p *plane.Plane, ns, job string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	plane.Eventually(t, "the Pod of Job "+job+" runs", func() (bool, string) {
		pods, err := p.Client().CoreV1().Pods(ns).List(context.Background(), metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil || len(pods.Items) == 0 {
			return false, fmt.Sprintf("%d Pods, %v", len(pods.Items), err)
		}
		pod = &pods.Items[0]
		return pod.Status.Phase == corev1.PodRunning, fmt.Sprintf("%+v", pod.Status)
	})
	return pod
}

// TestKueue is about what is taken for granted about Kueue, on one plane.
func TestKueue(t *testing.T) {
	p, ctx := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok, plane.Kueue)), context.Background()
	const mig = "nvidia.com/mig-1g.10gb"
	p.Classes(t)
	p.Machine(t, "q1", map[string]int64{mig: 4})
	p.GPUs(t, "q1", 1)
	start := func(t *testing.T, ns string, j *batchv1.Job) {
		t.Helper()
		if _, err := p.Client().BatchV1().Jobs(ns).Create(ctx, j, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	for _, of := range []string{mig, plane.MIG1Quota} {
		t.Run("admits as far as its quota goes, and preempts for who is above: "+of, func(t *testing.T) {
			ns := p.Namespace(t)
			if _, err := p.Client().ResourceV1().ResourceClaimTemplates(ns).Create(ctx,
				&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "piece"},
					Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
						Requests: []resourcev1.DeviceRequest{{Name: "piece",
							Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: plane.MIG1Class}}}}}}},
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			p.QueuePriority(t, "above-"+ns, 10)
			p.Queue(t, plane.Queue{Name: ns, Namespaces: []string{ns}, Quota: map[string]int64{of: 1}, Reclaims: true})
			start(t, ns, queued("first", ns, of, nil))
			first := running(t, p, ns, "first")
			start(t, ns, queued("waits", ns, of, nil))
			start(t, ns, queued("urgent", ns, of, map[string]string{plane.PriorityLabel: "above-" + ns}))
			running(t, p, ns, "urgent")
			plane.Eventually(t, "who was preempted is gone", func() (bool, string) {
				pod, err := p.Client().CoreV1().Pods(ns).Get(ctx, first.Name, metav1.GetOptions{})
				return err != nil || pod.Status.Phase == corev1.PodFailed, fmt.Sprint(pod.Status.Phase)
			})
			j, err := p.Client().BatchV1().Jobs(ns).Get(ctx, "waits", metav1.GetOptions{})
			if err != nil || j.Spec.Suspend == nil || !*j.Spec.Suspend {
				t.Errorf("a Job above the quota is not suspended: %+v, %v", j.Spec, err)
			}
		})
	}

	t.Run("says when a gap behind its Job ends", func(t *testing.T) {
		ns := p.Namespace(t)
		p.Queue(t, plane.Queue{Name: ns, Namespaces: []string{ns}, Quota: map[string]int64{mig: 4}})
		inv, err := inventories.Open(t.Context(), inventories.Options{Client: p.Client(), Dynamic: dynamic.NewForConfigOrDie(p.Config()),
			Operator: "op",
			Pools:    []inventories.Pool{{Name: "all", Resources: []inventories.Resource{{Name: mig}}}}})
		if err != nil {
			t.Fatal(err)
		}
		held := watched(t, inv)
		before := time.Now().Truncate(time.Second)
		start(t, ns, queued("hour", ns, mig, map[string]string{plane.MaxExecution: "3600"}))
		running(t, p, ns, "hour")
		plane.Eventually(t, "the inventory has the end of what Kueue admitted", func() (bool, string) {
			said := ""
			for _, s := range held() {
				for _, h := range s.Closures {
					end := h.End
					said += fmt.Sprintf("%s: %s to %d; ", s.Slice, h.Kind, end)
					if end != quantity.Never && !end.Time().Before(before.Add(time.Hour)) &&
						end.Time().Before(time.Now().Add(time.Hour+2*time.Minute)) {
						return true, ""
					}
				}
			}
			return false, said
		})
	})

	t.Run("is found again", func(t *testing.T) {
		ns := p.Namespace(t)
		p.Kill(plane.Kueue)
		if err := p.Start(plane.Kueue); err != nil {
			t.Fatal(err)
		}
		p.Queue(t, plane.Queue{Name: ns, Namespaces: []string{ns}, Quota: map[string]int64{mig: 1}})
		start(t, ns, queued("after", ns, mig, nil))
		running(t, p, ns, "after")
	})
}

// watched follows an inventory until the test is over. It returns what others hold, and what a node without subjobs keeps for those who
// wait.
func watched(t *testing.T, inv *inventories.Inventory) func() []inventory.Sighting {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var mu sync.Mutex
	var node giving.Giver
	kept := map[job.SliceID][]protocol.Reservation{}
	hear := func(s inventory.Sighting) {
		mu.Lock()
		defer mu.Unlock()
		if s.Wishes != nil {
			node.Hear(quantity.At(time.Now()), s.Wishes)
		}
	}
	for _, s := range inv.Held() {
		hear(s)
	}
	go func() { done <- inv.Watch(ctx, nil, hear) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() (list []inventory.Sighting) {
		mu.Lock()
		defer mu.Unlock()
		if now, due := quantity.At(time.Now()), node.Due(); due != 0 && due <= now {
			node.Decide(now, giving.Node{
				Confirmed: true, Sold: func(job.SliceID) []giving.Sold { return nil },
				Keep: func(id job.SliceID, holds []protocol.Reservation) { kept[id] = holds },
			})
		}
		for _, s := range inv.Held() {
			if s.Wishes == nil {
				list = append(list, s)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(kept)) {
			list = append(list, inventory.Sighting{Slice: id, Closures: kept[id]})
		}
		return list
	}
}
