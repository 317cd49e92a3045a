// Package dotproduct is the placement planner that multiplies what a task asks with what a node has left, and picks the
// node with the smallest product. (Tetris, SIGCOMM 2014, picks the largest; the published tables of FGD use this one.)
package dotproduct

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Kind of the planner. The score is
//
//	100 (1 - [cpu/128000 x cpu asked/128000 + gpu/8000 x gpu asked/8000] / 2)
//
// rounded down, with what is left on the node in thousandths. A share takes the device with the least left that it fits
// on. On devices of several classes the GPU terms count each device by its weight, so that smaller devices win.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "dotproduct",
		Summary: "the smallest product of what is asked and what is left (baseline of FGD, USENIX ATC'23)",
		New: func(o planner.Options) (planner.Planner, error) {
			return place.New(o, place.Settings{Scorer: newScorer})
		},
	}
}

type scorer struct{ scale place.Scale }

func newScorer(c planner.Cluster) place.Scorer { return scorer{place.ScaleOf(c)} }

func (s scorer) Score(n *place.Node, p *place.Pool, t *planner.Task) (score, level int) {
	left, asked := int64(0), int64(0)
	if n.Bounded {
		left, asked = n.CPU, t.CPU
	}
	cpu, gpu := s.scale.Parts(left, n.Value())
	cpuAsked, gpuAsked := s.scale.Parts(asked, place.Request(p, t))
	product := float64(cpu*cpuAsked) + float64(gpu*gpuAsked)
	return int((1 - product/2) * place.Best), place.LeastLevel(p, t)
}
