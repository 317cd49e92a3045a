package forecast

import (
	"maps"
	"math"
	"slices"
)

// judged is one prediction to make, and its outcome.
type judged struct {
	pod, step int
	peak      int64
}

// hindsight bounds are fitted to what came, so that they cost least with no more than 1% passed: one for all, one for each
// instant, one for each pod. A forecast does not know what came: where even these
// allocate more than the target, no forecast of their kind can reach it.
func (s *Series) hindsight() []Point {
	var all []judged
	for k := range s.Pods {
		for i := range s.Steps {
			if s.Pods[k].judged(i, history) {
				all = append(all, judged{k, i, s.Pods[k].next[i]})
			}
		}
	}
	var points []Point
	for _, way := range []struct {
		name string
		of   func(judged) int
	}{
		{"one bound for all", func(judged) int { return 0 }},
		{"one bound an instant", func(j judged) int { return j.step }},
		{"one bound a pod", func(j judged) int { return j.pod }},
	} {
		groups := map[int][]int64{}
		for _, j := range all {
			groups[way.of(j)] = append(groups[way.of(j)], j.peak)
		}
		points = append(points, Point{Rule: way.name, Theta: TargetUnder, Reported: cheapest(groups, len(all))})
	}
	return points
}

// cheapest bounds of groups of peaks: each minimizes its over-allocation plus a price for every peak that passes it, at the
// least price at which no more than the target are passed in all. Of all bounds with as few misses these allocate least
// (Everett 1963).
func cheapest(groups map[int][]int64, n int) Score {
	type group struct {
		peaks    []int64
		inverses float64 // sum of 1/peak
	}
	var list []group
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := group{peaks: slices.Sorted(slices.Values(groups[key]))}
		for _, p := range g.peaks {
			g.inverses += 1 / float64(p)
		}
		list = append(list, g)
	}
	at := func(price float64) (score Score) {
		for _, g := range list {
			best, bound := math.Inf(1), int64(0)
			for i, p := range g.peaks {
				if cost := float64(p)*g.inverses + price*float64(len(g.peaks)-1-i); cost < best {
					best, bound = cost, p
				}
			}
			for _, p := range g.peaks {
				score.add(bound, p)
			}
		}
		return score
	}
	low, high := 0.0, float64(n)
	for range 60 {
		mid := (low + high) / 2
		if score := at(mid); score.UnderRate() <= TargetUnder {
			high = mid
		} else {
			low = mid
		}
	}
	return at(high)
}
