package inventory

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestNoChangeGoesUnseen: a slice of which anything is other than when the changed ones were last taken is among those that are taken next.
func TestNoChangeGoesUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := New()
		now := quantity.Instant(1_000_000 * time.Second)
		n := 0
		said := func(s *Slice) string {
			why, ok := s.Usable()
			return fmt.Sprint(s.Desc(), why, ok, s.Sold(), s.Closed())
		}
		before := map[job.SliceID]string{}
		slice := func(t *rapid.T) *Slice {
			return i.Record(job.SliceID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "slice")))
		}
		t.Repeat(map[string]func(*rapid.T){
			"list": func(t *rapid.T) {
				var list []protocol.Slice
				for _, id := range []job.SliceID{"a", "b", "c"} {
					if rapid.Bool().Draw(t, "there") {
						list = append(list, protocol.Slice{ID: id, Speed: int64(rapid.IntRange(1, 2).Draw(t, "speed"))})
					}
				}
				_, missing := i.List(list)
				for _, s := range missing {
					i.Lose(s)
				}
			},
			"sell": func(t *rapid.T) {
				n++
				start := now.Add(time.Duration(n) * time.Minute)
				slice(t).Sell(protocol.ForLease, "j", job.Token{Epoch: 1, Seq: uint64(n)}, start, start.Add(30*time.Second))
			},
			"extend": func(t *rapid.T) {
				s := slice(t)
				if k := len(s.Sold()); k > 0 {
					s.Extend(s.Sold()[k-1].Token, s.Sold()[k-1].End+1)
				}
			},
			"truncate": func(t *rapid.T) {
				if s := slice(t); len(s.Sold()) > 0 && s.Sold()[0].End > s.Sold()[0].Start+1 {
					s.Truncate(s.Sold()[0].Token, s.Sold()[0].End-1)
				}
			},
			"return": func(t *rapid.T) {
				if s := slice(t); len(s.Sold()) > 0 {
					s.Return(s.Sold()[0].Token)
				}
			},
			"close": func(t *rapid.T) {
				n++
				slice(t).Close(protocol.Reservation{ID: uint64(n), Kind: protocol.ForDrain, Start: now, End: now.Add(time.Hour)})
			},
			"others": func(t *rapid.T) {
				n++
				slice(t).CloseFor(n, protocol.Reservation{Kind: protocol.ForForeign, Start: now, End: now.Add(time.Hour)})
			},
			"reopen": func(t *rapid.T) {
				if s := slice(t); len(s.Closed()) > 0 {
					s.Reopen(s.Closed()[0].ID)
				}
			},
			"condition": func(t *rapid.T) { slice(t).SetCondition(Condition{Quarantined: rapid.Bool().Draw(t, "quarantined")}) },
			"trouble":   func(t *rapid.T) { i.SetTrouble(&protocol.Condition{Unhealthy: rapid.Bool().Draw(t, "in trouble")}) },
			"memory":    func(t *rapid.T) { i.SetMemory(rapid.Bool().Draw(t, "short"), rapid.Bool().Draw(t, "full")) },
			"bear":      func(t *rapid.T) { slice(t).Bear(9, quantity.Amount(rapid.IntRange(0, 9).Draw(t, "bears"))) },
			"": func(t *rapid.T) {
				if !i.Confirmed() { // which all are offered anew after
					i.Confirm()
					for _, s := range i.All() {
						s.Remark()
					}
				}
				taken := map[*Slice]bool{}
				for _, s := range i.Take() {
					taken[s] = true
				}
				for _, s := range i.All() {
					if was, known := before[s.ID()]; known && was != said(s) && !taken[s] {
						t.Fatalf("%s was %s, is %s, and was not marked", s.ID(), was, said(s))
					}
					before[s.ID()] = said(s)
				}
			},
		})
	})
}

// TestEveryFieldOfAConditionMovesItsHash: facts that lose one would fold to what looks like the same state.
func TestEveryFieldOfAConditionMovesItsHash(t *testing.T) {
	c := &Condition{Quarantined: true, Fault: &health.Fault{}}
	digesttest.EveryField(t, c, func() uint64 { return c.Hash("a") }, "Quarantined")
}
