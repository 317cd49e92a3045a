package place

import "sluice.dev/sluice/internal/lab/planner"

// DotProduct is the placement planner that multiplies what a task asks with what a node has left, and picks the
// node with the smallest product. (Tetris, SIGCOMM 2014, picks the largest; the published tables of FGD use this one.)
//
// The score is
//
//	100 (1 - [cpu/128000 x cpu asked/128000 + gpu/8000 x gpu asked/8000] / 2)
//
// rounded down, with what is left on the node in thousandths. A share takes the device with the least left that it fits
// on. On devices of several classes the GPU terms count each device by its weight, so that smaller devices win.
func DotProduct() planner.Kind {
	return kind("dotproduct", "the smallest product of what is asked and what is left (baseline of FGD, USENIX ATC'23)",
		Settings{Scorer: newDotProduct})
}

type dotProduct struct{ scale Scale }

func newDotProduct(c planner.Cluster) Scorer { return dotProduct{ScaleOf(c)} }

func (s dotProduct) Score(n *Node, p *Pool, t *planner.Task) (score, level int) {
	left, asked := int64(0), int64(0)
	if n.Bounded {
		left, asked = n.CPU, t.CPU
	}
	cpu, gpu := s.scale.Parts(left, n.Value())
	cpuAsked, gpuAsked := s.scale.Parts(asked, Request(p, t))
	product := float64(cpu*cpuAsked) + float64(gpu*gpuAsked)
	return int((1 - product/2) * Best), LeastLevel(p, t)
}
