package tickets

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWhatIsKnownToBeFreeIs: whatever happens to slices, and however much time goes by, what is kept for probes is what looking at each
// slice anew gives.
func TestWhatIsKnownToBeFreeIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := inventory.New()
		classes := flow.Classes{10, 20, 40}
		f := free{inventory: i, classes: classes, minGap: 100 * time.Millisecond}
		now := quantity.Instant(1_000_000 * time.Second)
		var tokens []job.Token
		var on []*inventory.Slice
		ids := uint64(0)
		slice := func(t *rapid.T) *inventory.Slice {
			return i.Record(job.SliceID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "slice")))
		}
		span := func(t *rapid.T) (start, end quantity.Instant) {
			start = now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "start")) * time.Second)
			return start, start.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "length")) * time.Second)
		}
		t.Repeat(map[string]func(*rapid.T){
			"list": func(t *rapid.T) {
				var list []protocol.Slice
				for _, id := range []job.SliceID{"a", "b", "c", "d"} {
					if rapid.Bool().Draw(t, "there") {
						list = append(list, protocol.Slice{ID: id,
							Capacity: trp.Vector{quantity.Amount(rapid.SampledFrom([]int{10, 20, 40}).Draw(t, "capacity"))}})
					}
				}
				i.Forget(func(*inventory.Slice) bool { return false })
				_, missing := i.List(list)
				for _, s := range missing {
					i.Lose(s)
				}
			},
			"confirm": func(*rapid.T) { i.Confirm(); i.SetMemory(true, false); i.SetMemory(false, false) },
			"sell": func(t *rapid.T) {
				s := slice(t)
				if start, end := span(t); len(s.Sold()) == 0 {
					tokens, on = append(tokens, job.Token{Epoch: 1, Seq: uint64(len(tokens) + 1)}), append(on, s)
					s.Sell(protocol.ForLease, "j", tokens[len(tokens)-1], start, end)
				}
			},
			"return": func(t *rapid.T) {
				if len(tokens) > 0 {
					k := rapid.IntRange(0, len(tokens)-1).Draw(t, "token")
					on[k].Return(tokens[k])
				}
			},
			"close": func(t *rapid.T) {
				ids++
				s := slice(t)
				start, end := span(t)
				s.Close(protocol.Reservation{ID: ids, Kind: protocol.ForMaintenance, Slice: s.ID(), Start: start, End: end})
			},
			"reopen": func(t *rapid.T) {
				for r := range slice(t).Reservations {
					i.Record(r.Slice).Reopen(r.ID)
					return
				}
			},
			"trouble": func(t *rapid.T) { i.SetTrouble(&protocol.Condition{Unhealthy: rapid.Bool().Draw(t, "in trouble")}) },
			"quarantine": func(t *rapid.T) {
				slice(t).SetCondition(inventory.Condition{Quarantined: rapid.Bool().Draw(t, "quarantined")})
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				var want flow.Fragments
				for k, s := range i.All() {
					until, is := f.now(now, s)
					p := *f.at(now, k)
					if p.free != is || is && p.until != until || p.capacity != s.Capacity() {
						t.Fatalf("slice %s is free: %v until %v, and is known as %v until %v", s.ID(), is, until, p.free, p.until)
					}
					if class, ok := classes.Holds(s.Capacity()); ok && is {
						want[class]++
					}
				}
				if got := f.count(now); got != want {
					t.Fatalf("%v are free, %v are counted", want, got)
				}
			},
		})
	})
}
