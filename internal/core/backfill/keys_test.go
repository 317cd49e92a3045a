package backfill

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// TestKeysSayWhatTheOrderOfOpeningsDoes: of two openings who has the lesser key comes first.
func TestKeysSayWhatTheOrderOfOpeningsDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := [2]node{{at: 0}, {at: 1}}
		draw := func(name string) opening {
			return opening{
				node:    &nodes[rapid.IntRange(0, 1).Draw(t, name+" node")],
				start:   quantity.Instant(rapid.IntRange(0, 2).Draw(t, name+" start")),
				largest: quantity.Amount(rapid.IntRange(0, 2).Draw(t, name+" largest")),
			}
		}
		a, b := draw("a"), draw("b")
		for name, by := range map[string]ranking.Order[opening]{"smallest": smallest, "soonest": soonest} {
			x, y := by.Key(a), by.Key(b)
			if less := x[0] < y[0] || x[0] == y[0] && x[1] < y[1]; less && by.Compare(a, b) >= 0 {
				t.Fatalf("%s: the keys of %+v and %+v are %v and %v", name, a, b, x, y)
			}
		}
	})
}
