//go:build kubernetes

package kubernetes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestChaos has calls fail before and after they were carried out, cuts watches, ends the operator at any place, and deletes Pods by hand.
// What must hold then is looked up in the store and in what the API server has seen, and not with the executor: no Pod was made twice,
// what counts is stored whole, nothing else is named, and nothing is left.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chaos(t, seed)
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	const subjobs = 8
	d := newDesk(t)
	var mu sync.Mutex
	draw := rand.New(rand.NewPCG(seed, 1))
	chance := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return draw.IntN(n) == 0
	}
	failing := true
	d.api.Fail(func(verb, resource, _ string) error {
		mu.Lock()
		on := failing
		mu.Unlock()
		if !on || !chance(6) {
			return nil
		}
		return apierrors.NewInternalError(fmt.Errorf("%s of %s failed", verb, resource))
	})
	d.open()
	started := map[job.Token]protocol.Message{}
	for i := range subjobs {
		at := int64(10 * i)
		// Some end by themselves, the others when they are asked to.
		script := fmt.Sprintf("echo %d > $SLUICE_OUTPUT_DIR/from; p %d; ", at, at+10)
		if i%2 == 1 {
			script = fmt.Sprintf("trap 'exit 85' TERM; echo %d > $SLUICE_OUTPUT_DIR/from; p %d; while :; do sleep 0.05; done", at, at+5)
		}
		m := d.lease(tok(i+1), job.Range{From: at, To: at + 10}, nil, script)
		started[m.Token] = m
		d.do(m)
	}
	ended := func(n int) bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.results[tok(n)]) > 0 }
	all := func() bool {
		for i := range subjobs {
			if !ended(i + 1) {
				return false
			}
		}
		return true
	}
	for round := 0; !all(); round++ {
		if round > 3000 {
			t.Fatal("they do not end")
		}
		n := 1 + round%subjobs
		switch {
		case chance(8):
			d.api.Cut()
		case chance(8):
			found := d.open()
			for tok, m := range started { // what its node knows of and nobody found: it says Start again until it has heard of it
				if _, ok := found[tok]; !ok && !ended(int(tok.Seq)) && d.api.Created()[d.PodName(tok)] == 0 {
					d.do(m)
				}
			}
		case n%2 == 0 && chance(6):
			_ = d.Client.CoreV1().Pods("default").Delete(t.Context(), d.PodName(tok(n)), metav1.DeleteOptions{})
		case n%2 == 0 && chance(3):
			d.do(protocol.Message{Kind: protocol.Stop, Token: tok(n), Body: &protocol.Halt{Text: "enough"}})
		case n%2 == 0 && chance(3):
			d.do(protocol.Message{Kind: protocol.Deadline, Token: tok(n),
				Body: &protocol.Shift{End: quantity.At(d.now()).Add(20 * time.Second), Text: "reclaimed"}})
		}
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	failing = false
	mu.Unlock()
	d.api.Fail(nil)
	d.open()
	for i := range subjobs {
		r := d.result(tok(i + 1))
		d.mu.Lock()
		for _, again := range d.results[tok(i+1)] {
			// why it did not begin an operator that comes back may not know
			if again.Start == 0 && r.Start == 0 && again.Progress == r.Progress {
				continue
			}
			if again != r {
				t.Errorf("subjob %d ended as %+v, and as %+v", i+1, r, again)
			}
		}
		d.mu.Unlock()
		d.settle(tok(i+1), job.Range{From: int64(10 * i), To: r.Progress})
	}
	names := d.names()
	for i := range subjobs {
		from, r := int64(10*i), d.result(tok(i+1))
		name := fmt.Sprintf("outputs/main/train/1/%012d-%012d.%s", from, r.Progress, tok(i+1))
		refs, stored := names[name]
		delete(names, name)
		if counts := r.Progress > from; counts != stored {
			t.Errorf("subjob %d: %+v, and the store has %v", i+1, r, refs)
		} else if stored && d.content(refs["output"])["from"] != fmt.Sprint(from) {
			t.Errorf("subjob %d: its output is %v", i+1, d.content(refs["output"]))
		}
		if i%2 == 0 && r.Outcome != job.Done {
			t.Errorf("subjob %d, which nobody has asked to end: %+v", i+1, r)
		}
	}
	if len(names) > 0 {
		t.Errorf("the store names %v as well", names)
	}
	if left := d.Store.Places(); len(left) > 0 {
		t.Errorf("left at places: %v", left)
	}
	for name, n := range d.api.Created() {
		if n != 1 {
			t.Errorf("Pod %s was made %d times", name, n)
		}
	}
	d.do(protocol.Message{Kind: protocol.Purge, Job: "train"})
	d.Until("no Pod and no Secret is left", func() bool {
		p, err1 := d.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		s, err2 := d.Client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		return err1 == nil && err2 == nil && len(p.Items)+len(s.Items) == 0
	})
	t.Log(strings.TrimSpace(fmt.Sprint(d.ex.Calls())))
}
