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

// step is the most frequent distance of two instants, 0 where there are fewer.
func (g grid) step() (step int64) {
	count := map[int64]int{}
	for i := 1; i < len(g); i++ {
		d := g[i] - g[i-1]
		count[d]++
		if n := count[d]; n > count[step] || n == count[step] && d < step {
			step = d
		}
	}
	return step
}

// next is the first instant behind one; false if there is none.
func (g grid) next(at int64) (int64, bool) {
	i, _ := slices.BinarySearch(g, at+1)
	if i == len(g) {
		return 0, false
	}
	return g[i], true
}

// joined are spans without the breaks in which nothing was sampled at all: what was there before and behind such a one was there all the
// time, as far as anybody knows.
func (g grid) joined(s spans) (out spans) {
	for _, x := range s {
		if n := len(out); n > 0 {
			if next, _ := g.next(out[n-1].last); next >= x.first {
				out[n-1].last = x.last
				continue
			}
		}
		out = append(out, x)
	}
	return out
}
