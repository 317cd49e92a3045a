// Package fgd is fragmentation gradient descent (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads
// with Fragmentation Gradient Descent", USENIX ATC'23): the placement planner that picks the place where fragmentation,
// measured by the tasks that are typical, grows least.
package fgd

import (
	"errors"
	"math"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Kind of the planner. The score is 100 sigmoid((F before - F after)/1000), rounded down, with F as Fragments.Of has it, per
// typical task and in thousandths of a GPU; where nothing changes it is exactly 50. A share takes the device where that is
// highest, the first of equals.
//
// Devices of several classes count by their weight.
//
// F is a sum of integers, so that a placement that changes nothing scores 50 whatever the order of the sum and whatever
// the processor. The published program adds floating-point numbers, and their noise decides between 49 and 50: given its
// draws, this planner has 90 of its 110 published runs to the last digit, and the others within 0.4 percentage points in
// every column and within 0.05 in the mean of ten seeds.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "fgd",
		Summary: "where fragmentation grows least for typical tasks (FGD, USENIX ATC'23)",
		New:     create,
	}
}

// maxTotal bounds the counts of typical tasks, so that F fits in 64 bits.
const maxTotal = 1 << 31

func create(o planner.Options) (planner.Planner, error) {
	if err := checkTypical(o.Typical); err != nil {
		return nil, errors.Join(place.Check(o), err)
	}
	return place.New(o, place.Settings{Scorer: func(c planner.Cluster) place.Scorer {
		f := NewFragments(o.Typical)
		return &scorer{fragments: f, limits: limits(f.Total), known: make([]known, len(c.Nodes))}
	}})
}

func checkTypical(typical []planner.Typical) error {
	total := int64(0)
	for i, kind := range typical {
		if kind.Count <= 0 || kind.Count > maxTotal {
			return errkind.Errorf(errkind.Invalid, "typical tasks: the count of the class with index %d is %d; counts go from 1 to %d", i,
				kind.Count, maxTotal)
		}
		total += kind.Count
	}
	if total == 0 || total > maxTotal {
		return errkind.Errorf(errkind.Invalid, "typical tasks: there are %d of them in all; FGD measures fragments by 1 to %d "+
			"(fgd.Typical takes them from tasks of the past)", total, maxTotal)
	}
	return nil
}

type scorer struct {
	fragments *Fragments
	limits    [place.Best - 1]int64
	known     []known
}

// known is what typical tasks can use on a node, as of a version of it.
type known struct {
	version uint64
	usable  int64
	valid   bool
}

// limits[s-1] is the least fall of F that scores s: 1000 ln(s/(100-s)) per typical task. Comparing with them instead of
// computing an exponential gives the same score on every processor.
func limits(total int64) [place.Best - 1]int64 {
	// F counts thousandths of thousandths, and the logarithm is rounded at its ninth digit.
	const digits = 1_000_000_000
	var out [place.Best - 1]int64
	for s := 51; s < place.Best; s++ {
		x := int64(math.Round(1000 * digits * math.Log(float64(s)/float64(place.Best-s))))
		out[s-1] = quantity.MulDiv(x, total*planner.Whole, digits)
		out[place.Best-s-1] = -out[s-1] + 1
	}
	return out
}

// of is the score of a fall of F.
func (s *scorer) of(fall int64) int {
	low, high := 0, len(s.limits)
	for low < high {
		if mid := (low + high) / 2; s.limits[mid] <= fall {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (s *scorer) before(n *place.Node) int64 {
	k := &s.known[n.Index]
	if !k.valid || k.version != n.Version {
		*k = known{n.Version, s.fragments.usable(n), true}
	}
	return k.usable
}

// Score implements place.Scorer.
func (s *scorer) Score(n *place.Node, p *place.Pool, t *planner.Task) (score, level int) {
	f := s.fragments
	cpu := n.CPU
	if n.Bounded {
		cpu -= t.CPU
	}
	// rest is what typical tasks can use on the other pools afterwards.
	rest := int64(0)
	for i := range n.Pools {
		if q := &n.Pools[i]; q != p {
			rest += f.ofPool(n, cpu, q, q.Levels)
		}
	}
	base := f.Total*place.Request(p, t) - s.before(n) + rest
	switch {
	case p == nil:
		return s.of(base), 0
	case place.Size(t) > 0:
		return s.of(base + f.ofPool(n, cpu, p, f.without(p, len(p.Levels)-1, t.Devices, planner.Whole))), 0
	}
	score, level = -1, 0
	for i := p.Least(t.Share); i < len(p.Levels); i++ {
		got := s.of(base + f.ofPool(n, cpu, p, f.without(p, i, 1, t.Share)))
		if got > score || got == score && p.Levels[i].First < p.Levels[level].First {
			score, level = got, i
		}
	}
	return score, level
}

// without is the levels of p after so many devices of one level gave a share each; they are in no order, and some may be
// empty. The slice is good until the next call.
func (f *Fragments) without(p *place.Pool, level int, devices, share int32) []place.Level {
	f.after = append(f.after[:0], p.Levels...)
	f.after[level].Count -= devices
	if rest := f.after[level].Left - share; rest > 0 {
		f.after = append(f.after, place.Level{Left: rest, Count: devices})
	}
	return f.after
}
