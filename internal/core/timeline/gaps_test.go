package timeline

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestGapsAgainstInstants: whatever is carved out of gaps and joined to them, they are in order and apart, and hold the same instants
// as a plain list of them.
func TestGapsAgainstInstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const span = 60
		var gaps []protocol.Gap
		var free [span]bool
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			from := rapid.IntRange(0, span-1).Draw(t, "from")
			to := rapid.IntRange(from+1, span).Draw(t, "to")
			adds := rapid.Bool().Draw(t, "adds")
			if adds {
				gaps = Join(gaps, protocol.Gap{Start: quantity.Instant(from), End: quantity.Instant(to)})
			} else {
				gaps = Carve(gaps, quantity.Instant(from), quantity.Instant(to), protocol.ForLease)
			}
			for i := from; i < to; i++ {
				free[i] = adds
			}
		}
		r := protocol.Reservation{Start: quantity.Instant(rapid.IntRange(0, 20).Draw(t, "start")), Kind: protocol.ForServing}
		r.End = r.Start + quantity.Instant(rapid.IntRange(1, 5).Draw(t, "length"))
		r.Every = 7
		gaps = CarveAll(gaps, &r)
		for i := r.Start; i < span; i++ {
			if (i-r.Start)%7 < r.End-r.Start {
				free[i] = false
			}
		}
		for i, g := range gaps {
			if g.Start >= g.End || i > 0 && gaps[i-1].End > g.Start {
				t.Fatalf("gaps %v are not in order and apart", gaps)
			}
		}
		for i, want := range free {
			got := false
			for _, g := range gaps {
				got = got || g.Start <= quantity.Instant(i) && quantity.Instant(i) < g.End
			}
			if got != want {
				t.Fatalf("%d: free is %v, want %v: %v", i, got, want, gaps)
			}
		}
	})
}
