package place

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestColumn: the blocks of a column know what a plain list says.
func TestColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*block+5).Draw(t, "nodes")
		var c column
		c.reset(n)
		list := slices.Repeat([]int16{none}, n)
		for range rapid.IntRange(1, 60).Draw(t, "sets") {
			i, score := rapid.IntRange(0, n-1).Draw(t, "rank"), rapid.Int16Range(none, 4).Draw(t, "score")
			c.set(i, score)
			list[i] = score
			var room []int
			for i, s := range list {
				if s != none {
					room = append(room, i)
				}
			}
			if c.fit != len(room) || c.highest() != slices.Max(list) {
				t.Fatalf("%d nodes have room, the highest score is %d; the column says %d and %d", len(room), slices.Max(list), c.fit,
					c.highest())
			}
			if len(room) > 0 {
				if want := slices.Index(list, slices.Max(list)); c.best() != want {
					t.Fatalf("the best is %d, the column says %d", want, c.best())
				}
				k := rapid.IntRange(0, len(room)-1).Draw(t, "nth")
				if c.nth(k) != room[k] {
					t.Fatalf("number %d with room is %d, the column says %d", k, room[k], c.nth(k))
				}
			}
		}
	})
}
