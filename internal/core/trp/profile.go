package trp

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
)

// Form is how a profile's distribution was given.
type Form uint8

const (
	// Phases have a mean and a deviation each. A plain peak is one phase without deviation.
	Phases Form = iota + 1
	// Ensemble is a set of recorded runs, judged by the one-sided Clopper-Pearson bound.
	Ensemble
	// Envelope is a quantile curve given directly.
	Envelope
)

// Combine is how the excess probabilities of several phases are put together.
type Combine uint8

const (
	// Union adds them: sound whatever the dependence. The default.
	Union Combine = iota
	// Independent multiplies the chances of staying below.
	Independent
	// Maximum takes the largest: optimistic.
	Maximum
)

// Profile is a memory profile as declared, indexed by units of progress (Functional Memory Profile).
type Profile struct {
	Form    Form
	Combine Combine
	// Phases in order; each holds from the end of the one before up to UpTo. The last UpTo is the job's total.
	Phases []Phase
	// Runs are recorded peaks: Runs[i][p] is the peak of run i within phase p of Bounds.
	Runs   [][]quantity.Amount
	Bounds []int64
	// Curve gives the (1-theta)-quantile of use directly.
	Curve []Point
}

// Phase is one stretch of progress with its distribution of peak use.
type Phase struct {
	// UpTo is the unit this phase ends before.
	UpTo int64
	// Mean and SD of the peak within the phase; SD 0 means exact.
	Mean, SD quantity.Amount
}

// Point of an envelope: use is at most Amount up to unit UpTo.
type Point struct {
	UpTo   int64
	Amount quantity.Amount
}

// Table is a compiled profile: integers only, safe to keep in facts. Stretch i covers units [Bounds[i-1], Bounds[i]).
// Least[i][j-i] is the least capacity at which the chance that the peak over stretches i..j passes it is at most
// theta; it never falls as j grows.
type Table struct {
	Bounds []int64
	Least  [][]quantity.Amount
}

// bounds lists the ends of the profile's stretches.
func bounds(p Profile) []int64 {
	var b []int64
	switch p.Form {
	case Phases:
		for _, ph := range p.Phases {
			b = append(b, ph.UpTo)
		}
	case Envelope:
		for _, pt := range p.Curve {
			b = append(b, pt.UpTo)
		}
	default:
		b = p.Bounds
	}
	return b
}

// Equal says whether two declared profiles are the same.
func (p *Profile) Equal(o *Profile) bool {
	return p.Form == o.Form && p.Combine == o.Combine && slices.Equal(p.Phases, o.Phases) &&
		slices.EqualFunc(p.Runs, o.Runs, slices.Equal) &&
		slices.Equal(p.Bounds, o.Bounds) && slices.Equal(p.Curve, o.Curve)
}

// Equal says whether two compiled profiles are the same.
func (t *Table) Equal(o *Table) bool {
	return slices.Equal(t.Bounds, o.Bounds) && slices.EqualFunc(t.Least, o.Least, slices.Equal)
}

// Mix mixes a vector into a digest.
func (v Vector) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(len(v)))
	for _, a := range v { // digest.Numbers would want it on the heap
		h = h.Int(int64(a))
	}
	return h
}

// Mix mixes a compiled profile into a digest.
func (t *Table) Mix(h digest.Hash) digest.Hash {
	h = digest.Numbers(h, t.Bounds).Int(int64(len(t.Least)))
	for _, row := range t.Least {
		h = digest.Numbers(h, row)
	}
	return h
}

// Mix mixes a declared profile into a digest.
func (p *Profile) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(p.Form), int64(p.Combine), int64(len(p.Phases)))
	for _, q := range p.Phases {
		h = h.Int(q.UpTo, int64(q.Mean), int64(q.SD))
	}
	h = h.Int(int64(len(p.Runs)))
	for _, run := range p.Runs {
		h = digest.Numbers(h, run)
	}
	h = digest.Numbers(h, p.Bounds).Int(int64(len(p.Curve)))
	for _, q := range p.Curve {
		h = h.Int(q.UpTo, int64(q.Amount))
	}
	return h
}
