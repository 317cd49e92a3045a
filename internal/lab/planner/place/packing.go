package place

import "sluice.dev/sluice/internal/lab/planner"

// Packing is the placement planner that fills devices in use before idle ones, and nodes in use before idle ones.
//
// A task takes the devices with the least left that it fits on. The score is
//
//	max(33 - n, n)          on a node whose n devices are all idle, at most 33
//	max(50 - k, 33)         where it needs k idle devices of a node in use
//	max(100 - left/10, 50)  else, with the percent left of the devices it takes, rounded down
//
// A task without devices scores 0 everywhere: the lowest rank decides. Devices of several classes count alike; whole devices
// that are taken all or nothing always are the second case on a node in use.
func Packing() planner.Kind {
	return kind("packing", "devices in use first, then nodes in use (baseline of FGD, USENIX ATC'23)",
		Settings{Scorer: newPacking})
}

type packing struct{}

func newPacking(planner.Cluster) Scorer { return packing{} }

func (packing) Score(n *Node, p *Pool, t *planner.Task) (score, level int) {
	if p == nil {
		return 0, 0
	}
	idle, devices := 0, 0
	for i := range n.Pools {
		idle += int(n.Pools[i].Idle())
		devices += len(n.Pools[i].Devices)
	}
	level = LeastLevel(p, t)
	switch {
	case idle == devices:
		return min(max(Best/3-devices, devices), Best/3), level
	case Size(t) > 0:
		return max(Best/2-int(t.Devices), Best/3), level
	case p.Levels[level].Left == planner.Whole:
		return Best/2 - 1, level
	}
	percent := int(p.Levels[level].Left) * 100 / planner.Whole
	return max(Best-percent/10, Best/2), level
}
