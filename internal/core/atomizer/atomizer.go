// Package atomizer is the job's side of the negotiation: where a job may be cut and what a piece costs (SJA, arXiv
// 2509.19086, statements S2, S4 and S5; our definitions: docs/adr/0005-sja.md). One function, Fit,
// answers for every divisible kind: asked before a pick it is the signal of interest, which costs no work; asked again
// after it, with fresh progress, it materializes the piece. The package knows no slice, market or policy.
package atomizer

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Fit proposes the piece the job would cut from w, or says why there is none.
func Fit(v *View, w Window) (Piece, Refusal) {
	w.Speed = v.speed(w.Speed)
	switch {
	case v.Continues.Empty() && v.Running >= v.Parallelism(), !v.Continues.Empty() && v.Measures():
		return Piece{}, Refusal{Why: AtParallelism}
	case w.Speed == 0:
		return Piece{}, Refusal{Why: Barred}
	case v.Spec.Kind == job.Rigid:
		return fitRigid(v, w)
	case v.Spec.Kind == job.Items && v.Continues.Empty():
		return fitItems(v, w)
	case !v.Continues.Empty():
		free := job.NextFree(v.Continues.To, v.Spec.Total, v.Committed, v.Claimed)
		if free.From != v.Continues.To {
			return Piece{}, Refusal{Why: NoFreeWork}
		}
		limit, end := v.suspectLimit(free)
		return cut(v, w, job.Range{From: free.From, To: end}, free.From+limit)
	default:
		free := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
		if free.Empty() {
			return Piece{}, Refusal{Why: NoFreeWork}
		}
		return cut(v, w, free, free.To)
	}
}

// fitRigid takes all that is left of the job or nothing.
func fitRigid(v *View, w Window) (Piece, Refusal) {
	whole := job.NextFree(0, v.Spec.Total, v.Committed, v.Claimed)
	if whole.Empty() || whole.To != v.Spec.Total || len(v.Claimed) > 0 {
		return Piece{}, Refusal{Why: NoFreeWork}
	}
	least := v.Safe().LeastOver(0, v.Spec.Total, v.Scale())
	wall := v.Spec.WalltimeAt(w.Speed)
	p := Piece{Range: whole, Run: wall, Wall: v.Prepare() + wall, Length: RigidLength(v.Spec, w.Speed)}
	p.Demand[trp.Memory] = least
	switch {
	case !p.Demand.Fits(w.Capacity):
		return Piece{}, Refusal{Why: Unsafe, Least: least}
	case v.Spec.Walltime == 0 && w.End != quantity.Never:
		return Piece{}, Refusal{Why: NotForever}
	case v.Spec.Walltime == 0:
		p.Length = w.End.Sub(w.Start)
	case p.Length > w.End.Sub(w.Start):
		return Piece{}, Refusal{Why: TooShort, Need: p.Length}
	}
	return p, Refusal{}
}
