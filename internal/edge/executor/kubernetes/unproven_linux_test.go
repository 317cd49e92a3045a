//go:build kubernetes

package kubernetes_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	if _, err := pods.Patch(t.Context(), d.PodName(tok(1)), types.MergePatchType, []byte(`{"spec":{"nodeName":"main-machine"}}`), metav1.PatchOptions{}); err != nil {
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
