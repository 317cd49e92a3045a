package zone

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesAgainstAList: whatever is set and cleared, the way through gives the same positions as a plain list.
func TestPlacesAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p, q places
		var list [200]bool
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "position")
			if list[i] = rapid.Bool().Draw(t, "set"); list[i] {
				p.set(i)
			} else {
				p.clear(i)
			}
		}
		for range rapid.IntRange(0, 10).Draw(t, "more") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "added")
			q.set(i)
			list[i] = true
		}
		p.add(q)
		var want []int
		for i, in := range list {
			if in {
				want = append(want, i)
			}
			if p.has(i) != in {
				t.Fatalf("%d: %v", i, p.has(i))
			}
		}
		var got []int
		for i := p.next(0); i >= 0; i = p.next(i + 1) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) || p.len() != len(want) {
			t.Fatalf("%v, %d of them, want %v", got, p.len(), want)
		}
	})
}
