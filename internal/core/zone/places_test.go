package zone

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesAgainstAList: whatever is set and cleared, both ways through give the same positions as a plain list.
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
		var up, down []int
		for i := p.from(0, 1); i >= 0; i = p.from(i+1, 1) {
			up = append(up, i)
		}
		for i := p.from(len(list)-1, -1); i >= 0; i = p.from(i-1, -1) {
			down = append(down, i)
		}
		slices.Reverse(down)
		if !slices.Equal(up, want) || !slices.Equal(down, want) || p.len() != len(want) {
			t.Fatalf("up %v, down %v, %d of them, want %v", up, down, p.len(), want)
		}
	})
}
