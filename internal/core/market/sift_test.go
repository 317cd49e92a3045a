package market

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatIsBeatenDecidesNothing: of pieces for one window those are sold, planned and put first that would be if all were cleared,
// ties and jobs that have waited too long included.
func TestWhatIsBeatenDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Payment: Free, Freeze: time.Duration(rapid.IntRange(1, 6).Draw(t, "freeze")) * tick}.WithDefaults()
		now := quantity.Instant(1e15)
		var sifter Floor
		var pieces []piece
		for range rapid.IntRange(1, 30).Draw(t, "pieces") {
			sifter.asks = append(sifter.asks, ask{quote: &quote{name: job.ID(fmt.Sprintf("j%02d", len(pieces)))}})
			start := rapid.Int64Range(0, 9).Draw(t, "start")
			pieces = append(pieces, piece{
				start: start, end: start + rapid.Int64Range(1, 9).Draw(t, "length"), weight: rapid.Int64Range(0, 6).Draw(t, "weight"),
				ask: int32(len(pieces)), soon: start <= int64(c.Freeze/tick), fixed: rapid.IntRange(0, 9).Draw(t, "waits") == 0,
			})
		}
		sold := func(list []piece) (out []string) {
			f := NewFloor(FloorConfig{Policy: fifo.Policy{}, Market: &c, Horizon: time.Hour, MinWindow: tick}, nil)
			for _, x := range list {
				d, due := &fakeJob{spec: &job.Spec{Name: sifter.asks[x.ask].quote.name, Parallelism: 1}, submitted: now}, quantity.Never
				if x.fixed {
					due = now
				}
				f.bids = append(f.bids, bid{
					Variant: protocol.Variant{ID: 1, Start: now.Add(time.Duration(x.start) * tick), Range: job.Range{From: 0, To: 1}},
					job:     &Job{Demand: d, due: due}, end: now.Add(time.Duration(x.end) * tick), weight: x.weight,
				})
			}
			slices.SortFunc(f.bids, func(a, b bid) int { return cmp.Compare(a.job.Name(), b.job.Name()) })
			f.budget.Capacity(1_000_000)
			f.budget.Fill(now.Add(-time.Hour))
			f.budget.Fill(now)
			f.pickWinners(now, []offer{{slice: &Slice{class: &Class{Speed: 1000}}}})
			for i := range f.bids {
				if b := &f.bids[i]; b.won {
					out = append(out, fmt.Sprint(b.job.Name(), b.free, b.price))
				}
			}
			return out
		}
		sifter.pieces = pieces
		var rest []piece
		for i := range pieces {
			if sifter.beater(&pieces[i]) < 0 {
				rest = append(rest, pieces[i])
			}
		}
		if all, few := sold(pieces), sold(rest); !slices.Equal(all, few) {
			t.Fatalf("of all %v win, of those that are not beaten %v:\n%+v", all, few, pieces)
		}
	})
}
