package queue_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/lab/swarm/queue"
)

// TestRing compares it with a slice.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r queue.Ring[int]
		var want []int
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0 && len(want) > 0:
				if first := r.First(); first != want[0] || r.Take() != first {
					t.Fatalf("took %d, want %d", first, want[0])
				}
				want = want[1:]
			case what == 1:
				r.PutBack(i)
				want = slices.Insert(want, 0, i)
			default:
				r.Put(i)
				want = append(want, i)
			}
			if r.Len() != len(want) {
				t.Fatalf("%d are in it, want %d", r.Len(), len(want))
			}
		}
	})
}

// TestLists compares them with slices.
func TestLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := queue.NewLists[int](3)
		var want [3][]int
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			k := rapid.IntRange(0, 2).Draw(t, "list")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				l.Clear(int32(k))
				want[k] = nil
			case 1:
				most, drops, stop := rapid.IntRange(1, 10).Draw(t, "most"), rapid.IntRange(1, 3).Draw(t, "drops"),
					rapid.IntRange(1, 10).Draw(t, "stop")
				var asked, expected, kept []int
				l.Sift(int32(k), most, func(x int) (drop, more bool) {
					asked = append(asked, x)
					return x%drops == 0, len(asked) < stop
				})
				for j, x := range want[k] {
					if looked := j < min(most, stop); looked {
						expected = append(expected, x)
						if x%drops == 0 {
							continue
						}
					}
					kept = append(kept, x)
				}
				if want[k] = kept; !slices.Equal(asked, expected) {
					t.Fatalf("asked of %v, want %v", asked, expected)
				}
			default:
				l.Put(int32(k), i)
				want[k] = append(want[k], i)
			}
			for k := range want {
				var got []int
				l.Sift(int32(k), 1<<30, func(x int) (drop, more bool) {
					got = append(got, x)
					return false, true
				})
				if !slices.Equal(got, want[k]) || l.Len(int32(k)) != len(want[k]) {
					t.Fatalf("list %d is %v (%d), want %v", k, got, l.Len(int32(k)), want[k])
				}
			}
		}
	})
}
