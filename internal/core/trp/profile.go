package trp

import "sluice.dev/sluice/internal/core/quantity"

// Form is how a profile's distribution was given (SYSTEMS.md 2.2, FMP forms).
type Form uint8

const (
	// Phases have a mean and a deviation each (form A). A plain peak is one phase without deviation.
	Phases Form = iota + 1
	// Ensemble is a set of recorded runs, judged by the one-sided Clopper-Pearson bound (form B).
	Ensemble
	// Envelope is a quantile curve given directly (form C).
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
	// Runs are recorded peaks: Runs[i][p] is the peak of run i within phase p of Bounds (form B).
	Runs   [][]quantity.Amount
	Bounds []int64
	// Curve gives the (1-theta)-quantile of use directly (form C).
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
