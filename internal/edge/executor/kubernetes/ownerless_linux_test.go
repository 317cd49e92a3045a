//go:build kubernetes

package kubernetes_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/job"
)

// saves reports five units, waits until it is told to end, and yields.
const saves = `trap 'exit 85' TERM; echo five > $SLUICE_OUTPUT_DIR/out; printf '{"progress":5}' > $SLUICE_PROGRESS_FILE
while :; do sleep 0.05; done`

// ended waits until a subjob's Pod is over, which frees its device.
func (d *desk) ended(t job.Token) {
	d.Helper()
	d.Until("Pod "+t.String()+" is over", func() bool {
		p := d.Pod(t)
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
}

// TestPodsYieldWithoutTheirOperator: while it lives they go on, though the store is away for a while. Once it is dead they yield by
// themselves, and the next operator has what they did, once.
func TestPodsYieldWithoutTheirOperator(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ownerless = 6 * time.Second
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, saves))
	d.begun(tok(1))
	d.Store.SetAway(true)
	time.Sleep(d.ownerless / 2)
	d.Store.SetAway(false)
	time.Sleep(2 * d.ownerless)
	if p := d.Pod(tok(1)); p == nil || p.Status.Phase != corev1.PodRunning {
		t.Fatalf("it does not run though its operator lives: %+v", p)
	}
	d.close()
	died := time.Now()
	d.ended(tok(1))
	if took := time.Since(died); took < d.ownerless/2 {
		t.Errorf("it yields %v after its operator died", took)
	}
	found := d.open()
	if f, ok := found[tok(1)]; !ok {
		t.Errorf("the next operator finds %+v", f)
	}
	r := d.result(tok(1))
	if r.Outcome != job.Yielded || r.Progress != 5 || !strings.Contains(r.Detail, "nothing was heard of the operator for") {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 5})
	if list, err := d.ex.Files().Outputs("train"); err != nil || len(list) != 1 {
		t.Errorf("outputs %+v, %v", list, err)
	}
	if places := d.Store.Places(); len(places) != 1 || !strings.HasPrefix(places[0], "beats/main") {
		t.Errorf("left at places: %q, want the operator's own word alone", places)
	}
}

// TestPodsGoOnWhileTheirOperatorRestarts, and as it was before where no time is said.
func TestPodsGoOnWhileTheirOperatorRestarts(t *testing.T) {
	t.Parallel()
	for _, ownerless := range []time.Duration{0, 10 * time.Second} {
		d := newDesk(t)
		d.ownerless = ownerless
		d.open()
		d.do(d.lease(tok(1), job.Range{To: 10}, nil, saves))
		d.begun(tok(1))
		for range 3 {
			d.close()
			time.Sleep(3 * time.Second)
			d.open()
			time.Sleep(3 * time.Second)
		}
		if p := d.Pod(tok(1)); p == nil || p.Status.Phase != corev1.PodRunning {
			t.Errorf("ownerless %v: it does not run: %+v", ownerless, p)
		}
	}
}

// TestAPodThatCanNotTell whether its operator lives, as it is cut off from the store, yields too.
func TestAPodThatCanNotTell(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ownerless = 4 * time.Second
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, saves))
	d.begun(tok(1))
	d.Store.SetAway(true)
	d.Until("it has heard that it yields", func() bool {
		n, ok := d.Notice(tok(1))
		return ok && strings.Contains(n.Why, "nothing was heard of the operator")
	})
	d.Store.SetAway(false)
	if r := d.result(tok(1)); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("%+v", r)
	}
}
