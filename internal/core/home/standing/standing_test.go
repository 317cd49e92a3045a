package lease

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestEachClaimHasOneLease: random claims that come and go, held against a plain list of tokens.
func TestEachClaimHasOneLease(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Claims
		s.Init()
		var want []job.Token // as they were claimed
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			token := job.Token{Epoch: 1, Seq: rapid.Uint64Range(1, 6).Draw(rt, "token")}
			i := slices.Index(want, token)
			switch {
			case rapid.Bool().Draw(rt, "claimed"):
				if added := s.Add(&protocol.Claim{Token: token}) != nil; added != (i < 0) {
					rt.Fatalf("%v is claimed: %v, beside %v", token, added, want)
				}
				if i < 0 {
					want = append(want, token)
				}
			case i >= 0:
				if c, l := s.Remove(token); c.Token != token || l.Token() != token {
					rt.Fatalf("of %v came the claim %v and the lease %v", token, c.Token, l.Token())
				}
				want = slices.Delete(want, i, i+1)
			}
			for i, l := range s.Leases() {
				if l.Token() != want[i] {
					rt.Fatalf("lease %d is of %v, want %v", i, l.Token(), want[i])
				}
			}
			byToken := slices.SortedFunc(slices.Values(want), job.Token.Compare)
			if len(s.All()) != len(want) || len(s.Leases()) != len(want) {
				rt.Fatalf("%d claims and %d leases, want %d", len(s.All()), len(s.Leases()), len(want))
			}
			for i := range s.All() {
				if s.All()[i].Token != byToken[i] {
					rt.Fatalf("claim %d is of %v, want %v", i, s.All()[i].Token, byToken[i])
				}
			}
			if (s.Claim(token) == nil) != (s.Lease(token) == nil) {
				rt.Fatalf("%v has a claim or a lease, and not both", token)
			}
		}
	})
}

// TestWhatALeaseWaitsFor: each step of a lease's life, and whether something about it waits for an answer then.
func TestWhatALeaseWaitsFor(t *testing.T) {
	c := &protocol.Claim{Token: job.Token{Seq: 1},
		Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 5}, Start: 1, End: 100}}}
	leased := Lease{token: c.Token}
	for _, step := range []struct {
		what    string
		do      func(l *Lease) bool // false: it is to be refused
		settled bool
	}{
		{"redeemed", func(l *Lease) bool { l.Redeemed(1, 7); return l.WonBy() == 7 && l.Sent() == 1 }, false},
		{"leased", func(l *Lease) bool { l.Confirm(); return true }, true},
		{"withdrawn before it began", (*Lease).Withdraw, false},
		{"it has begun meanwhile", func(l *Lease) bool { l.Begin(10, true); return true }, true},
		{"withdrawn then", func(l *Lease) bool { return !l.Withdraw() }, true},
		{"extended", func(l *Lease) bool { l.Extend(c); l.Extending(20, 8); return l.Extension() == 8 }, false},
		{"another extension is answered", func(l *Lease) bool { return !l.Extended(9) }, false},
		{"its own is", func(l *Lease) bool { return l.Extended(8) }, true},
	} {
		if !step.do(&leased) || leased.Settled() != step.settled {
			t.Fatalf("%s: nothing waits for an answer: %v, want %v", step.what, leased.Settled(), step.settled)
		}
	}
	if r, end, _ := leased.Before(); r != c.Range || end != c.End {
		t.Errorf("before it was extended it was %v until %d", r, end)
	}
}

// TestHowLongAHomeWaits beyond a lease's end: as long as its node says that output is stored or that processes remain, and no longer than
// the bound.
func TestHowLongAHomeWaits(t *testing.T) {
	const end, skew = quantity.Instant(time.Hour), 5 * time.Second
	at := func(d time.Duration) quantity.Instant { return end.Add(d) }
	for _, c := range []struct {
		what             string
		storing, remains quantity.Instant
		want             quantity.Instant
	}{
		{"silence", 0, 0, at(skew)},
		{"stored before the end", at(-time.Minute), 0, at(skew)},
		{"stored a while after", at(time.Minute), 0, at(time.Minute + skew)},
		{"stored for too long", at(time.Hour), 0, at(MostStoring + skew)},
		{"its processes remain", 0, at(2 * time.Minute), at(2*time.Minute + skew)},
		{"they do for too long", at(time.Minute), at(time.Hour), at(MostRemaining + skew)},
	} {
		l := Lease{storing: c.storing, remains: c.remains}
		if got := l.GivenUp(end, skew); got != c.want {
			t.Errorf("%s: given up %v after the end, want %v", c.what, got.Sub(end), c.want.Sub(end))
		}
	}
}

// TestWhenASubjobBids for the window behind its own: once for each end, and only while it runs on one slice and nothing is asked.
func TestWhenASubjobBids(t *testing.T) {
	c := &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{End: quantity.Instant(time.Minute),
		Plan: protocol.Plan{Wall: 40 * time.Second}}}}
	l := Lease{running: 1}
	if at := l.BidsAt(c, time.Second); at != c.End.Add(-11*time.Second) {
		t.Errorf("it bids %v before its end, want its grace and a quarter of its length", c.End.Sub(at))
	}
	if l.Bids(c); l.BidsAt(c, time.Second) != quantity.Never {
		t.Error("it bids again for the same end")
	}
	c.End++
	if l.BidsAt(c, time.Second) == quantity.Never {
		t.Error("its end has moved, and it bids no more")
	}
	if l.Extending(1, 3); l.BidsAt(c, time.Second) != quantity.Never {
		t.Error("it bids while it is being extended")
	}
}
