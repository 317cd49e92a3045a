package bets

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAPieceHasOneBet from its ask to its end, whichever of these it has come to.
func TestAPieceHasOneBet(t *testing.T) {
	j := &home.Job{}
	j.Spec = &job.Spec{Kind: job.Items}
	for _, c := range []struct {
		name string
		do   func(k *Book, a *home.Ask, t job.Token)
		ends bool
	}{
		{"asked", func(*Book, *home.Ask, job.Token) {}, false},
		{"refused", func(k *Book, a *home.Ask, _ job.Token) { k.Forgo(a) }, true},
		{"granted", func(k *Book, a *home.Ask, t job.Token) { k.Won(a, t); k.Forgo(a) }, false},
		{"over", func(k *Book, a *home.Ask, t job.Token) { k.Won(a, t); k.Drop(t) }, true},
		{"another is over", func(k *Book, a *home.Ask, t job.Token) { k.Won(a, t); k.Drop(job.Token{Seq: t.Seq + 1}) }, false},
	} {
		var k Book
		a := &home.Ask{Job: j}
		k.list = append(k.list, bet{ask: a})
		if c.do(&k, a, job.Token{Epoch: 1, Seq: 7}); k.Empty() != c.ends {
			t.Errorf("%s: nothing is bet is %v", c.name, k.Empty())
		}
	}
}

// TestWithoutLearnerNoBets: every method works without a learner.
func TestWithoutLearnerNoBets(t *testing.T) {
	var k Book
	b := New(0)
	b.Look(1, &k, &protocol.SliceView{}, nil)
	b.Ask(&k, &home.Ask{})
	b.Settle(&k, nil, &protocol.Claim{}, &job.Result{Start: 1}, job.Range{})
	if b != nil || !k.Empty() || b.Safe(&k, 1) != quantity.Never || b.Loses(nil) || k.Until(job.Token{}) != quantity.Never {
		t.Error("something is bet")
	}
}

// TestAGapThatIsOverCutsWhatWasSoldInIt, and nothing that begins when it is over.
func TestAGapThatIsOverCutsWhatWasSoldInIt(t *testing.T) {
	b, k := New(10_000), Book{}
	in, after := job.Token{Seq: 1}, job.Token{Seq: 2}
	k.list = []bet{{token: in}, {token: after}}
	at := quantity.Instant(100 * time.Second)
	sold := func(yield func(Sale) bool) {
		_ = yield(Sale{in, 0, at}) && yield(Sale{after, at.Add(10 * time.Second), at.Add(20 * time.Second)})
	}
	b.Look(at.Add(-time.Second), &k,
		&protocol.SliceView{Reserved: []protocol.Reservation{{Kind: protocol.ForOwner, Start: at.Add(-time.Second),
			End: at.Add(5 * time.Second)}}}, sold)
	if !k.of(in).cut || k.of(after).cut {
		t.Errorf("cut are %+v", k.list)
	}
}
