package explain

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestLossesAreTheLatestOfEachClass: held against a list of all that was lost, of which those of a class that makes room are struck.
func TestLossesAreTheLatestOfEachClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Losses
		all := map[int][]quantity.Instant{}
		for at := quantity.Instant(1); at < 40; at++ {
			o := &Outcome{Class: rapid.IntRange(0, mostLosses+2).Draw(t, "class"), At: at,
				Winners: []Winner{{Job: "w", Start: 10, End: 20}}}
			n := Loss{Latest: o, Start: quantity.Instant(rapid.IntRange(0, 25).Draw(t, "start"))}
			n.End = n.Start + quantity.Instant(rapid.IntRange(1, 12).Draw(t, "length"))
			l.Note(&n)
			if n.Start >= 20 || n.End <= 10 {
				continue
			}
			if all[o.Class] == nil && len(all) == mostLosses {
				oldest := -1
				for c, list := range all {
					if oldest < 0 || list[len(list)-1] < all[oldest][len(all[oldest])-1] {
						oldest = c
					}
				}
				delete(all, oldest)
			}
			all[o.Class] = append(all[o.Class], at)
		}
		out := l.List()
		if len(out) != len(all) {
			t.Fatalf("%d entries, want %d", len(out), len(all))
		}
		for i := range l.list {
			x := &l.list[i]
			if want := all[x.Latest.Class]; x.count != int64(len(want)) || x.Latest.At != want[len(want)-1] {
				t.Fatalf("class %d: %d losses until %d, want %v", x.Latest.Class, x.count, x.Latest.At, want)
			}
		}
		for i := 1; i < len(out); i++ {
			if out[i].Last > out[i-1].Last {
				t.Fatalf("out of order: %+v", out)
			}
		}
	})
}
