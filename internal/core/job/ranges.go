package job

import (
	"fmt"
	"slices"
)

// Range is the half-open stretch of units [From, To).
type Range struct{ From, To int64 }

// Len is the number of units; 0 for an empty or inverted range.
func (r Range) Len() int64 { return max(0, r.To-r.From) }

// Empty says whether the range holds no unit.
func (r Range) Empty() bool { return r.To <= r.From }

// Overlaps says whether r and q share a unit.
func (r Range) Overlaps(q Range) bool { return r.From < q.To && q.From < r.To }

// Contains says whether every unit of q is in r.
func (r Range) Contains(q Range) bool { return q.Empty() || (r.From <= q.From && q.To <= r.To) }

// String is the form for people: [from,to).
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.From, r.To) }

// Ranges is a set of units as sorted, disjoint, non-empty, non-touching ranges. The zero value is empty. Methods that
// change it return the new set and may reuse the old one's memory.
type Ranges []Range

// Len is the number of units in the set.
func (s Ranges) Len() int64 {
	var n int64
	for _, r := range s {
		n += r.Len()
	}
	return n
}

// after returns the index of the first range that ends after x.
func (s Ranges) after(x int64) int {
	i, _ := slices.BinarySearchFunc(s, x, func(r Range, x int64) int {
		if r.To <= x {
			return -1
		}
		return 1
	})
	return i
}

// Overlaps says whether any unit of r is in the set.
func (s Ranges) Overlaps(r Range) bool {
	i := s.after(r.From)
	return !r.Empty() && i < len(s) && s[i].Overlaps(r)
}

// Contains says whether every unit of r is in the set.
func (s Ranges) Contains(r Range) bool {
	if r.Empty() {
		return true
	}
	i := s.after(r.From)
	return i < len(s) && s[i].Contains(r)
}

// Add returns the union with r.
func (s Ranges) Add(r Range) Ranges {
	if r.Empty() {
		return s
	}
	i := s.after(r.From - 1) // touching on the left joins
	j := i
	for j < len(s) && s[j].From <= r.To {
		r.From, r.To = min(r.From, s[j].From), max(r.To, s[j].To)
		j++
	}
	return slices.Replace(s, i, j, r)
}

// Remove returns the set without the units of r.
func (s Ranges) Remove(r Range) Ranges {
	if r.Empty() {
		return s
	}
	i := s.after(r.From)
	j := i
	var keep [2]Range
	n := 0
	for j < len(s) && s[j].From < r.To {
		if s[j].From < r.From {
			keep[n] = Range{s[j].From, r.From}
			n++
		}
		if s[j].To > r.To {
			keep[n] = Range{r.To, s[j].To}
			n++
		}
		j++
	}
	return slices.Replace(s, i, j, keep[:n]...)
}

// NextFree returns the first maximal range of units within [from, total) that is in none of the sets, or an empty range.
func NextFree(from, total int64, sets ...Ranges) Range {
	for from < total {
		end, moved := total, false
		for _, s := range sets {
			i := s.after(from)
			if i == len(s) {
				continue
			}
			if s[i].From <= from {
				from, moved = s[i].To, true
				break
			}
			end = min(end, s[i].From)
		}
		if !moved {
			return Range{from, end}
		}
	}
	return Range{total, total}
}

// Ends says whether one of the ranges ends at x.
func (s Ranges) Ends(x int64) bool {
	i := s.after(x - 1)
	return i < len(s) && s[i].To == x
}
