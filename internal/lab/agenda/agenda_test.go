package agenda_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/agenda"
)

// TestHeap compares it with a sorted list.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type thing struct {
			at     quantity.Instant
			number int
		}
		var h agenda.Heap[int]
		var want []thing
		for i := range rapid.IntRange(1, 200).Draw(rt, "things") {
			if rapid.IntRange(0, 2).Draw(rt, "take") == 0 && len(want) > 0 {
				first := slices.MinFunc(want, func(a, b thing) int {
					return cmp.Or(cmp.Compare(a.at, b.at),
						cmp.Compare(a.number, b.number))
				})
				if h.Next() != first.at {
					rt.Fatalf("the next is at %d, want %d", h.Next(), first.at)
				}
				if got := h.Take(); got != first.number {
					rt.Fatalf("took %d, want %d", got, first.number)
				}
				want = slices.DeleteFunc(want, func(x thing) bool { return x == first })
				continue
			}
			x := thing{quantity.Instant(rapid.IntRange(0, 20).Draw(rt, "at")), i}
			h.Put(x.at, i)
			want = append(want, x)
		}
		for range want {
			h.Take()
		}
		if h.Next() != quantity.Never {
			rt.Fatal("an empty heap has something to come")
		}
	})
}
