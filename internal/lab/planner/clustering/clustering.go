// Package clustering is the placement planner that puts tasks of one size together: shares of a device with shares, tasks
// of two devices with tasks of two, and so on.
package clustering

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Kind of the planner. The score is 25 (8000 - gpu)/8000, rounded down, with what is left on the node in thousandths, and
//
//	75 more where every task with devices on the node is of this size
//	50 more where some are
//	25 more where there is none
//
// A task without devices scores 0 everywhere: the lowest rank decides. A share takes the device with the least left that it
// fits on. Devices count by their weight; a task that spreads counts as so many tasks of one device.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "clustering",
		Summary: "beside tasks of the same size (baseline of FGD, USENIX ATC'23)",
		New: func(o planner.Options) (planner.Planner, error) {
			return place.New(o, place.Settings{Scorer: newScorer})
		},
	}
}

type scorer struct{ scale place.Scale }

func newScorer(c planner.Cluster) place.Scorer { return scorer{place.ScaleOf(c)} }

func (s scorer) Score(n *place.Node, p *place.Pool, t *planner.Task) (score, level int) {
	if p == nil {
		return 0, 0
	}
	score = int(25 * (s.scale.GPU - n.Value()/planner.Whole) / s.scale.GPU)
	same, other := false, false
	for _, tally := range n.Tallies {
		if tally.Count > 0 {
			same = same || tally.Size == place.Size(t)
			other = other || tally.Size != place.Size(t)
		}
	}
	switch {
	case same && !other:
		score += 75
	case same:
		score += 50
	case !other:
		score += 25
	}
	return score, place.LeastLevel(p, t)
}
