package place

import "sluice.dev/sluice/internal/lab/planner"

// Clustering is the placement planner that puts tasks of one size together: shares of a device with shares, tasks
// of two devices with tasks of two, and so on.
//
// The score is 25 (8000 - gpu)/8000, rounded down, with what is left on the node in thousandths, and
//
//	75 more where every task with devices on the node is of this size
//	50 more where some are
//	25 more where there is none
//
// A task without devices scores 0 everywhere: the lowest rank decides. A share takes the device with the least left that it
// fits on. Devices count by their weight; a task that spreads counts as so many tasks of one device.
func Clustering() planner.Kind {
	return kind("clustering", "beside tasks of the same size (baseline of FGD, USENIX ATC'23)",
		Settings{Scorer: newClustering})
}

type clustering struct{ scale Scale }

func newClustering(c planner.Cluster) Scorer { return clustering{ScaleOf(c)} }

func (s clustering) Score(n *Node, p *Pool, t *planner.Task) (score, level int) {
	if p == nil {
		return 0, 0
	}
	score = int(25 * (s.scale.GPU - n.Value()/planner.Whole) / s.scale.GPU)
	same, other := false, false
	for _, tally := range n.Tallies {
		if tally.Count > 0 {
			same = same || tally.Size == Size(t)
			other = other || tally.Size != Size(t)
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
	return score, LeastLevel(p, t)
}
