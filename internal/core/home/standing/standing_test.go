package standing

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestEachClaimHasOneState: random claims that come and go, held against a plain list of tokens.
func TestEachClaimHasOneState(t *testing.T) {
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
				if c, st := s.Remove(token); c.Token != token || st.Token() != token {
					rt.Fatalf("of %v came the claim %v and the state %v", token, c.Token, st.Token())
				}
				want = slices.Delete(want, i, i+1)
			}
			for i, st := range s.States() {
				if st.Token() != want[i] {
					rt.Fatalf("state %d is of %v, want %v", i, st.Token(), want[i])
				}
			}
			byToken := slices.SortedFunc(slices.Values(want), job.Token.Compare)
			if len(s.All()) != len(want) || len(s.States()) != len(want) {
				rt.Fatalf("%d claims and %d states, want %d", len(s.All()), len(s.States()), len(want))
			}
			for i := range s.All() {
				if s.All()[i].Token != byToken[i] {
					rt.Fatalf("claim %d is of %v, want %v", i, s.All()[i].Token, byToken[i])
				}
			}
			if (s.Claim(token) == nil) != (s.State(token) == nil) {
				rt.Fatalf("%v has a claim or a state, and not both", token)
			}
		}
	})
}

// TestWhatAClaimWaitsFor: each step of a claim's life, and whether something about it waits for an answer then.
func TestWhatAClaimWaitsFor(t *testing.T) {
	c := &protocol.Claim{Token: job.Token{Seq: 1},
		Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 5}, Start: 1, End: 100}}}
	claimed := ClaimState{token: c.Token}
	for _, step := range []struct {
		what    string
		do      func(st *ClaimState) bool // false: it is to be refused
		settled bool
	}{
		{"Redeem is sent", func(st *ClaimState) bool { st.RedeemSent(1, 7); return st.WonBy() == 7 && st.Sent() == 1 }, false},
		{"leased", func(st *ClaimState) bool { st.Confirm(); return true }, true},
		{"withdrawn before it began", (*ClaimState).Withdraw, false},
		{"it has begun meanwhile", func(st *ClaimState) bool { st.Begin(10, true); return true }, true},
		{"withdrawn then", func(st *ClaimState) bool { return !st.Withdraw() }, true},
		{"extended", func(st *ClaimState) bool { st.Extend(c); st.Extending(20, 8); return st.Extension() == 8 }, false},
		{"another extension is answered", func(st *ClaimState) bool { return !st.Extended(9) }, false},
		{"its own is", func(st *ClaimState) bool { return st.Extended(8) }, true},
	} {
		if !step.do(&claimed) || claimed.Settled() != step.settled {
			t.Fatalf("%s: nothing waits for an answer: %v, want %v", step.what, claimed.Settled(), step.settled)
		}
	}
	if r, end, _ := claimed.Before(); r != c.Range || end != c.End {
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
		st := ClaimState{storing: c.storing, remains: c.remains}
		if got := st.GivenUp(end, skew); got != c.want {
			t.Errorf("%s: given up %v after the end, want %v", c.what, got.Sub(end), c.want.Sub(end))
		}
	}
}

// TestWhenASubjobBids for the window behind its own: once for each end, and only while it runs on one slice and nothing is asked.
func TestWhenASubjobBids(t *testing.T) {
	c := &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{End: quantity.Instant(time.Minute),
		Plan: protocol.Plan{Wall: 40 * time.Second}}}}
	st := ClaimState{running: 1}
	if at := st.BidsAt(c, time.Second); at != c.End.Add(-11*time.Second) {
		t.Errorf("it bids %v before its end, want its grace and a quarter of its length", c.End.Sub(at))
	}
	if st.Bids(c); st.BidsAt(c, time.Second) != quantity.Never {
		t.Error("it bids again for the same end")
	}
	c.End++
	if st.BidsAt(c, time.Second) == quantity.Never {
		t.Error("its end has moved, and it bids no more")
	}
	if st.Extending(1, 3); st.BidsAt(c, time.Second) != quantity.Never {
		t.Error("it bids while it is being extended")
	}
}
