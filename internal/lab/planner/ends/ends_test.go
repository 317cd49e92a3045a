package ends

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// shadow is the definition: try every end.
func shadow(tasks []Task, now quantity.Instant, free, want int32) (quantity.Instant, int32) {
	at := func(t quantity.Instant) int32 {
		n := free
		for _, k := range tasks {
			if max(k.End, now+1) <= t {
				n += k.Devices
			}
		}
		return n
	}
	best := quantity.Never
	for _, k := range tasks {
		if e := max(k.End, now+1); at(e) >= want {
			best = min(best, e)
		}
	}
	return best, at(best)
}

// TestAgainstSlice runs a list through adds and removals that split, merge and empty chunks, next to a plain slice.
func TestAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l List
		var plain []Task
		next := planner.ID(0)
		for range rapid.IntRange(1, 20).Draw(t, "phases") {
			if rapid.Bool().Draw(t, "add") {
				for range rapid.IntRange(1, 150).Draw(t, "so many") {
					k := Task{End: quantity.Instant(rapid.IntRange(0, 500).Draw(t, "end")), ID: next, Devices: int32(next % 5)}
					if next%31 == 0 {
						k.End = quantity.Never
					}
					next++
					l.Add(k)
					plain = append(plain, k)
				}
			} else {
				for n := rapid.IntRange(1, 200).Draw(t, "remove"); n > 0 && len(plain) > 0; n-- {
					i := rapid.IntRange(0, len(plain)-1).Draw(t, "which")
					l.Remove(plain[i])
					plain = slices.Delete(plain, i, i+1)
				}
			}
			slices.SortFunc(plain, func(a, b Task) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			if got := l.Append(nil); !slices.Equal(got, plain) {
				t.Fatalf("it holds %v, want %v", got, plain)
			}
			if first, ok := l.First(); ok != (len(plain) > 0) || ok && first != plain[0] {
				t.Fatalf("first is %v %v", first, ok)
			}
			l.check(t)
			total := int32(0)
			for _, k := range plain {
				total += k.Devices
			}
			if total == 0 {
				continue
			}
			now, free := quantity.Instant(rapid.IntRange(-1, 501).Draw(t, "now")), int32(rapid.IntRange(0, 3).Draw(t, "free"))
			want := free + rapid.Int32Range(1, total).Draw(t, "want")
			at, then := l.Shadow(now, free, want)
			if wantAt, wantThen := shadow(plain, now, free, want); at != wantAt || then != wantThen {
				t.Fatalf("at %d with %d free %d are there at %d (%d), want %d (%d)", now, free, want, at, then, wantAt, wantThen)
			}
		}
	})
}

// check tests the invariants of chunks.
func (l *List) check(t *rapid.T) {
	for i, c := range l.chunks {
		sum := int32(0)
		for k := range c.n {
			sum += c.tasks[k].Devices
		}
		if c.n == 0 || sum != c.sum || l.firsts[i] != c.tasks[0] {
			t.Fatalf("chunk %d of %d tasks has the sum %d and first %v, want %d and %v", i, c.n, c.sum, l.firsts[i], sum, c.tasks[0])
		}
	}
}
