package trp

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestRaised holds it against its definition, piece by piece.
func TestRaised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "stretches")
		table, end := Table{}, int64(0)
		for i := range n {
			end += rapid.Int64Range(1, 3).Draw(t, "units")
			table.Bounds = append(table.Bounds, end)
			row := make([]quantity.Amount, n-i)
			for k := range row {
				row[k] = quantity.Amount(rapid.IntRange(0, 9).Draw(t, "need"))
				if k > 0 {
					row[k] = max(row[k], row[k-1])
				}
			}
			table.Least = append(table.Least, row)
		}
		x := rapid.Int64Range(-1, end+1).Draw(t, "unit")
		least := quantity.Amount(rapid.IntRange(0, 12).Draw(t, "least"))
		stretch := func(u int64) int { return table.stretch(u) }
		raised := table.Raised(x, least)
		for from := range end {
			for to := from + 1; to <= end; to++ {
				want := table.LeastOver(from, to, Unscaled)
				if x >= 0 && x < end && stretch(from) <= stretch(x) && stretch(x) <= stretch(to-1) {
					want = max(want, least)
				}
				if got := raised.LeastOver(from, to, Unscaled); got != want {
					t.Fatalf("unit %d raised to %d: [%d,%d) needs %d, want %d", x, least, from, to, got, want)
				}
			}
		}
	})
}
