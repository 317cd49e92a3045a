//go:build kubernetes

// Package pods tests subjobs as Pods on a real API server with its scheduler and controllers. The kubelet is one of tests (podtest):
// containers are processes.
package pods

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	code := plane.Run(m, plane.With(plane.Scheduler, plane.Controllers))
	podtest.Clean()
	os.Exit(code)
}

var worlds atomic.Int64

// newWorld makes a machine with slices in a namespace that takes restricted Pods alone.
func newWorld(t *testing.T) *podtest.World {
	t.Helper()
	return newWorldOn(t, plane.Of(t), 4)
}

// newWorldOn makes one on a plane, of so many slices.
func newWorldOn(t *testing.T, p *plane.Plane, slices int64) *podtest.World {
	t.Helper()
	never := corev1.PreemptNever
	_, err := p.Client().SchedulingV1().PriorityClasses().Create(context.Background(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000_000, PreemptionPolicy: &never,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	ns := p.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted")
	return podtest.NewWorld(t, p.Client(), fmt.Sprintf("w%d", worlds.Add(1)), ns, map[string]int64{"example.com/slice": slices})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	executortest.Run(t, false, func(t *testing.T) executortest.Harness { return newWorld(t).Harness() })
}

// TestConformanceWithDRA: the device is asked for by a claim, which the scheduler allocates.
func TestConformanceWithDRA(t *testing.T) {
	t.Parallel()
	executortest.Run(t, false, func(t *testing.T) executortest.Harness {
		w := newWorld(t)
		p := plane.Of(t)
		p.Classes(t)
		p.GPUs(t, w.Node, 1)
		w.Device = cluster.Device{Node: w.Node, Class: plane.MIGClass, Driver: plane.Driver, Pool: w.Node, Name: "gpu-0-mig-1g10gb-3"}
		return w.Harness()
	})
}

// TestTheDeviceThatWasSold: whichever device of a GPU a slice is, the scheduler allocates that one, though CEL knows no names. What it all
// costs is said, and the claim goes with the Pod.
func TestTheDeviceThatWasSold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := plane.Of(t)
	p.Classes(t)
	p.GPUs(t, w.Node, 2)
	said := make(chan protocol.Message, 1000)
	ex := w.Open(func(m protocol.Message) { said <- m })
	defer func() { _ = ex.Close() }()
	if _, err := ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := func(k protocol.Kind) protocol.Message {
		t.Helper()
		for {
			select {
			case m := <-said:
				if m.Kind == protocol.Report && k != protocol.Report {
					continue
				}
				if m.Kind != k {
					t.Fatalf("%+v, want kind %d", m, k)
				}
				return m
			case <-time.After(plane.Within):
				t.Fatalf("nothing of kind %d", k)
			}
		}
	}
	names := []string{"gpu-1-mig-1g10gb-0", "gpu-0-mig-1g10gb-6", "gpu-1-mig-3g40gb-4", "gpu-0-mig-7g80gb-0"}
	for i, name := range names {
		tok := job.Token{Epoch: 1, Seq: uint64(i + 1)}
		w.Device = cluster.Device{Node: w.Node, Class: plane.MIGClass, Driver: plane.Driver, Pool: w.Node, Name: name}
		now, launch := quantity.At(time.Now()), podtest.Program(executortest.Polite)
		launch.Grace = 10 * time.Second
		ex.Do(protocol.Message{Kind: protocol.Start, Token: tok, Job: "j",
			Body: &protocol.Work{Placement: protocol.Placement{Slice: "s", Range: job.Range{To: 10}, Start: now,
				End: now.Add(10 * time.Minute)}, Spec: &job.Spec{Name: "j", Kind: job.Items, Total: 10, Grid: 1, Slices: 1,
				Launch: launch}}}, journal.Position{Seq: 7})
		next(protocol.Started)
		claim, err := w.Client.ResourceV1().ResourceClaims(w.Namespace).Get(t.Context(), w.PodName(tok), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := claim.Status.Allocation.Devices.Results; len(got) != 1 || got[0].Device != name || got[0].Pool != w.Node {
			t.Errorf("allocated %+v, want %s", got, name)
		}
		ex.Do(protocol.Message{Kind: protocol.Stop, Token: tok, Body: &protocol.Halt{Text: "over"}}, journal.Position{})
		if r := next(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.Yielded || r.Progress != 5 {
			t.Errorf("%+v", r)
		}
		ex.Do(protocol.Message{Kind: protocol.Settle, Token: tok, Job: "j", Body: &protocol.Settlement{Range: job.Range{To: 5},
			Committed: true}}, journal.Position{})
		next(protocol.Settled)
		w.Until("all of it is gone", func() bool {
			_, noClaim := w.Client.ResourceV1().ResourceClaims(w.Namespace).Get(t.Context(), w.PodName(tok), metav1.GetOptions{})
			return w.Pod(tok) == nil && apierrors.IsNotFound(noClaim)
		})
	}
	calls := ex.Calls()
	var sum int64
	for what, n := range calls {
		if !strings.HasPrefix(what, "list") && !strings.HasPrefix(what, "watch") {
			sum += n
		}
	}
	if most := int64(6 * len(names)); sum > most {
		t.Errorf("%d calls for %d subjobs that were stopped, want at most %d: %v", sum, len(names), most, calls)
	}
	t.Logf("calls for %d subjobs under DRA, each of them stopped: %v", len(names), calls)
}

// TestAQuotaOfProcessorAndMemory: a namespace that refuses Pods which do not say what they ask for takes ours.
func TestAQuotaOfProcessorAndMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourceRequestsCPU: resource.MustParse("1"), corev1.ResourceRequestsMemory: resource.MustParse("1Gi"),
	}}}
	if _, err := w.Client.CoreV1().ResourceQuotas(w.Namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	said := make(chan protocol.Message, 1000)
	ex := w.Open(func(m protocol.Message) {
		if m.Kind == protocol.Exited {
			said <- m
		}
	})
	defer func() { _ = ex.Close() }()
	if _, err := ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, tok := quantity.At(time.Now()), job.Token{Epoch: 1, Seq: 1}
	ex.Do(protocol.Message{Kind: protocol.Start, Token: tok, Job: "j",
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "s", Range: job.Range{To: 10}, Start: now,
			End: now.Add(10 * time.Minute)}, Spec: &job.Spec{Name: "j", Kind: job.Items, Total: 10, Grid: 1, Slices: 1,
			Launch: podtest.Program(executortest.Quick)}}}, journal.Position{Seq: 1})
	select {
	case m := <-said:
		if r := m.Body.(*protocol.Conclusion).Result; r.Outcome != job.Done {
			t.Errorf("%+v", r)
		}
	case <-time.After(plane.Within):
		t.Fatal("no answer")
	}
	if p := w.Pod(tok); p == nil || p.Status.QOSClass == corev1.PodQOSBestEffort || p.Spec.Containers[0].Resources.Requests.Cpu().IsZero() {
		t.Errorf("%+v, want a Pod that says what it asks for", p)
	}
}
