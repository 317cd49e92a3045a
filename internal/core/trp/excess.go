package trp

import "sluice.dev/sluice/internal/core/quantity"

// Excess is the chance, from 0 to 1, that the peak over units [from, to) passes capacity, by the profile's own form and
// combination: what a threshold of Compile is compared with. For an ensemble it is the 95% upper bound; for an envelope,
// which says nothing between, 0 at or above the curve and 1 below. An empty piece has none. It is for display and tests;
// decisions use a Table. The profile must be one that Compile accepts.
func Excess(p Profile, from, to int64, capacity quantity.Amount) float64 {
	t := Table{Bounds: bounds(p)}
	to = min(to, t.Total())
	if from = max(from, 0); from >= to {
		return 0
	}
	i, j := t.stretch(from), t.stretch(to-1)
	switch p.Form {
	case Phases:
		return phasesExcess(p.Phases[i:j+1], p.Combine, capacity)
	case Ensemble:
		return UpperBound(len(p.Runs), excesses(p.Runs, i, j, capacity))
	default:
		for _, pt := range p.Curve[i : j+1] {
			if pt.Amount > capacity {
				return 1
			}
		}
		return 0
	}
}
