package history

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Gap is [From, To) in which a device is free.
type Gap struct{ From, To quantity.Instant }

// Spans are stretches of time in order, none touching the next.
type Spans []Gap

// With is the union with [from, to).
func (s Spans) With(from, to quantity.Instant) Spans {
	if from >= to {
		return s
	}
	first, _ := slices.BinarySearchFunc(s, from, func(x Gap, t quantity.Instant) int { return cmp.Compare(x.To, t) })
	last := first
	for ; last < len(s) && s[last].From <= to; last++ {
		from, to = min(from, s[last].From), max(to, s[last].To)
	}
	return slices.Replace(s, first, last, Gap{from, to})
}

// Within gives the parts of the spans that lie in [from, to).
func (s Spans) Within(from, to quantity.Instant) iter.Seq[Gap] {
	return func(yield func(Gap) bool) {
		i, _ := slices.BinarySearchFunc(s, from, func(x Gap, t quantity.Instant) int { return cmp.Compare(x.To, t) })
		for ; i < len(s) && s[i].From < to; i++ {
			if x := (Gap{max(from, s[i].From), min(to, s[i].To)}); x.From < x.To && !yield(x) {
				return
			}
		}
	}
}

// Overlap is how much of [from, to) lies in the spans.
func (s Spans) Overlap(from, to quantity.Instant) (sum time.Duration) {
	for x := range s.Within(from, to) {
		sum += x.To.Sub(x.From)
	}
	return sum
}

// Use is what was measured of a device: when at all, and when it was idle or busy from one sample to the next. Of the rest it is known that
// it was measured, and not which.
type Use struct{ Covered, Idle, Busy Spans }
