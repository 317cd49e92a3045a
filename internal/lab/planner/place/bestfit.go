package place

import "sluice.dev/sluice/internal/lab/planner"

// BestFit is the placement planner that leaves the least processor and GPU time idle on the node it picks.
//
// The score is
//
//	100 (1 - [(cpu - cpu asked)/128000 + (gpu - gpu asked)/8000] / 2)
//
// rounded down, with what is left on the node in thousandths; host memory is a constraint and is not scored. A share takes
// the device with the least left that it fits on.
//
// On devices of several classes the GPU terms count each device by its weight, and the smallest class that fits (least
// memory, then least weight) comes before any score, whatever the node. Where all classes are alike in both, as on the
// cluster that the formula was published for, the score alone decides.
func BestFit() planner.Kind {
	return kind("bestfit", "the smallest device that fits, on the node with the least left (baseline of FGD, USENIX ATC'23)",
		Settings{Scorer: newBestFit, SmallestFirst: true})
}

type bestFit struct{ scale Scale }

func newBestFit(c planner.Cluster) Scorer { return bestFit{ScaleOf(c)} }

func (s bestFit) Score(n *Node, p *Pool, t *planner.Task) (score, level int) {
	cpu := int64(0)
	if n.Bounded {
		cpu = n.CPU - t.CPU
	}
	x, y := s.scale.Parts(cpu, n.Value()-Request(p, t))
	return int((1 - (float64(x*0.5) + float64(y*0.5))) * Best), LeastLevel(p, t)
}
