package auction

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatIsBeatenDecidesNothing: of pieces for one window those are sold, planned and put first that would be if all were cleared,
// ties and jobs that have waited too long included.
func TestWhatIsBeatenDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Payment: Free, Freeze: time.Duration(rapid.IntRange(1, 6).Draw(t, "freeze")) * variant.Tick}.WithDefaults()
		now := quantity.Instant(1e15)
		var sifter sieve
		var pieces []piece
		for range rapid.IntRange(1, 30).Draw(t, "pieces") {
			sifter.heard = append(sifter.heard, heard{quote: &quote{name: job.ID(fmt.Sprintf("j%02d", len(pieces)))}})
			start := rapid.Int64Range(0, 9).Draw(t, "start")
			pieces = append(pieces, piece{
				start: start, end: start + rapid.Int64Range(1, 9).Draw(t, "length"), weight: rapid.Int64Range(0, 6).Draw(t, "weight"),
				heard: int32(len(pieces)), soon: start <= int64(c.Freeze/variant.Tick), late: rapid.IntRange(0, 9).Draw(t, "waits") == 0,
			})
		}
		sold := func(list []piece) (out []string) {
			w := newWorld(fifo.Policy{}, c)
			for _, x := range list {
				d, due := &markettest.Job{Of: &job.Spec{Name: sifter.heard[x.heard].quote.name, Parallelism: 1}, Came: now}, quantity.Never
				if x.late {
					due = now
				}
				j := &index.Job{Demand: d}
				w.parts.Index.Activate(j, due)
				b := bid{worth: worth{weight: x.weight}}
				b.Variant = protocol.Variant{ID: 1, Start: now.Add(time.Duration(x.start) * variant.Tick), Range: job.Range{From: 0, To: 1}}
				b.Job, b.End = j, now.Add(time.Duration(x.end)*variant.Tick)
				w.x.plan.bids = append(w.x.plan.bids, b)
			}
			w.x.plan.sort()
			w.parts.Late.Capacity(1_000_000)
			w.parts.Late.Fill(now.Add(-time.Hour))
			w.parts.Late.Fill(now)
			w.x.plan.pick(now, []agents.Offer{{Slice: w.slice(0, 1000)}})
			for i := range w.x.plan.bids {
				if b := &w.x.plan.bids[i]; b.won {
					out = append(out, fmt.Sprint(b.Job.Name(), b.late, b.price))
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
