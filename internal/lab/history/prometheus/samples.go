package prometheus

import (
	"cmp"
	"slices"
)

// span is the instants of samples in [first, last], in milliseconds: the first and the last are of it.
type span struct{ first, last int64 }

// spans are ordered and disjoint.
type spans []span

// with takes in another, which may stand anywhere.
func (s spans) with(x span) spans {
	from, _ := slices.BinarySearchFunc(s, x.first, func(y span, t int64) int { return cmp.Compare(y.last, t) })
	to := from
	for ; to < len(s) && s[to].first <= x.last; to++ {
		x.first, x.last = min(x.first, s[to].first), max(x.last, s[to].last)
	}
	return slices.Replace(s, from, to, x)
}

// held are the spans of a series in which its value is as wanted: a sample that is not, or that is missing, ends one. What is missing is
// known by the distance of the others.
func (s *series) held(is func(float64) bool) (out spans) {
	step := s.step()
	for i, at := range s.at {
		if !is(s.values[i]) {
			continue
		}
		if n := len(out); n > 0 && i > 0 && out[n-1].last == s.at[i-1] && at-s.at[i-1] <= step+step/2 {
			out[n-1].last = at
		} else {
			out = append(out, span{at, at})
		}
	}
	return out
}

// step is the least distance of two samples; 0 of one alone.
func (s *series) step() (least int64) {
	for i := 1; i < len(s.at); i++ {
		if d := s.at[i] - s.at[i-1]; least == 0 || d < least {
			least = d
		}
	}
	return least
}

// grid is the instants at which anything was sampled.
type grid []int64

// with takes in the instants of a series. Most have none that is new.
func (g grid) with(at []int64) grid {
	i, _ := slices.BinarySearch(g, at[0])
	fresh := false
	for k := i; len(at) > 0; k++ {
		if k == len(g) || g[k] > at[0] {
			fresh = true
			break
		}
		if g[k] == at[0] {
			at = at[1:]
		}
	}
	if !fresh {
		return g
	}
	g = append(g, at...)
	slices.Sort(g)
	return slices.Compact(g)
}

// next is the first instant a step behind one, at which what was there at the one must be seen again or be gone; false if there is none.
// Questions that were not asked for the same instants have samples in between, which say nothing of it.
func (g grid) next(at, step int64) (int64, bool) {
	i, _ := slices.BinarySearch(g, at+max(1, step-step/8))
	if i == len(g) {
		return 0, false
	}
	return g[i], true
}

// joined are spans without the breaks in which nothing was sampled at all: what was there before and behind such a one was there all the
// time, as far as anybody knows.
func (g grid) joined(s spans, step int64) (out spans) {
	for _, x := range s {
		if n := len(out); n > 0 {
			if next, ok := g.next(out[n-1].last, step); !ok || next > x.first-max(1, step-step/8) {
				out[n-1].last = x.last
				continue
			}
		}
		out = append(out, x)
	}
	return out
}
