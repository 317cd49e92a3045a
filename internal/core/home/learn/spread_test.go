package learn

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWideningLeavesAPlace: what fitted the largest slice at a scale still does, however much wider the profile was to become.
func TestWideningLeavesAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		largest := quantity.Amount(rapid.Int64Range(1000, 1<<40).Draw(t, "largest"))
		scale := rapid.Int64Range(trp.Unscaled, 4000).Draw(t, "scale")
		table := func(need quantity.Amount) *trp.Table {
			return &trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{need}}}
		}
		now := table(quantity.Amount(rapid.Int64Range(1, int64(largest)).Draw(t, "now")))
		wider := table(now.Least[0][0] + quantity.Amount(rapid.Int64Range(0, 1<<40).Draw(t, "more")))
		before := wider.Least[0][0]
		withinReach(wider, now, largest, scale)
		switch got := wider.Least[0][0]; {
		case now.Peak(scale) <= largest && wider.Peak(scale) > largest:
			t.Fatalf("at %d it needed %d of %d, now %d", scale, now.Peak(scale), largest, wider.Peak(scale))
		case got < now.Least[0][0] || got > before:
			t.Fatalf("%d became %d; it was to be between %d and that", before, got, now.Least[0][0])
		}
	})
}
