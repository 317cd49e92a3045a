//go:build kubernetes

package kubernetes_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAStopIsHeardThoughNobodySaysWhetherThereAreKeys: what can't be found out holds no order up.
func TestAStopIsHeardThoughNobodySaysWhetherThereAreKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	d.api.Fail(func(verb, resource, _ string) error {
		if verb == "get" && resource == "secrets" {
			return apierrors.NewServiceUnavailable("not now")
		}
		return nil
	})
	d.open()
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough", Now: true}})
	d.Until("its end is asked for", func() bool { p := d.Pod(tok(1)); return p == nil || p.DeletionTimestamp != nil })
}

// TestNobodySpins: a Pod that a machine has, that has not begun and is to end is looked at when something is new, and not all the time.
func TestNobodySpins(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	pods := d.Client.CoreV1().Pods("default")
	if _, err := pods.Patch(t.Context(), d.PodName(tok(1)), types.MergePatchType, []byte(`{"spec":{"nodeName":"main-machine"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	d.later(40 * time.Second)
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough", Now: true}})
	d.Until("its end is asked for", func() bool { p := d.Pod(tok(1)); return p == nil || p.DeletionTimestamp != nil })
	before := d.asked.Load()
	time.Sleep(time.Second) // who spins looks hundreds of thousands of times
	if n := d.asked.Load() - before; n > 1000 {
		t.Errorf("%d looks in a second", n)
	}
}

// TestWhatRunsHasBegunThoughNoWordComes: a store that takes none does not keep its node from stopping it.
func TestWhatRunsHasBegunThoughNoWordComes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	d.Store.SetAway(true)
	d.Kubelet.Silence(false)
	d.later(30 * time.Second)
	d.begun(tok(1))
	d.Store.SetAway(false)
	d.Until("it heeds signals", func() bool { p, ok := d.Dir(tok(1)).ReadProgress(); return ok && p.Progress == 5 })
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough"}})
	if r := d.result(tok(1)); r.Outcome != job.Yielded {
		t.Errorf("%+v", r)
	}
}

// TestAPodThatComesLate: its creation had no answer, its subjob was stopped and is settled, and then it is there. Nobody waits for it, and
// it goes; what is stored stays.
func TestAPodThatComesLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	late := make(chan *corev1.Pod, 1)
	d.api.PrependReactor("create", "pods", func(a core.Action) (bool, runtime.Object, error) {
		p := a.(core.CreateAction).GetObject().(*corev1.Pod)
		if p.Annotations["test"] != "" {
			return false, nil, nil
		}
		select {
		case late <- p.DeepCopy():
		default:
		}
		return true, nil, apierrors.NewTimeoutError("nobody knows", 0)
	})
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	p := <-late
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough"}})
	if r := d.result(tok(1)); r.Outcome != job.Stopped {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{})
	p.Annotations["test"] = "late"
	if _, err := d.Client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.Until("it is gone", func() bool { return d.Pod(tok(1)) == nil })
}

// TestWhoStopsItsSupervisorIsEnded by the first process of its Pod, which says so, and not by the kubelet alone.
func TestWhoStopsItsSupervisorIsEnded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, func(w *protocol.Work) {
		w.End = w.Start.Add(8 * time.Second) // the kubelet kills it 25 s later
	}, "trap '' TERM; p 5; while :; do sleep 0.05; done"))
	d.begun(tok(1))
	note, err := d.Dir(tok(1)).ReadNote()
	if err == nil {
		err = syscall.Kill(note.PID, syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := d.result(tok(1)); r.Outcome != job.Lost || !strings.Contains(r.Detail, "supervisor died") {
		t.Errorf("%+v", r)
	}
}
