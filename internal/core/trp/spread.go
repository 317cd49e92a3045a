package trp

import (
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// MaxSpread is the widest spread, in parts per thousand: sixteen times the deviations declared.
	MaxSpread = 16_000
	// leastDeviation of a phase that is widened, in parts per thousand of its mean.
	leastDeviation = 20
	// quantileMargin is what a recorded peak or a point of an envelope is raised by for each further spread of one, in parts
	// per thousand of itself.
	quantileMargin = 100
)

// Spread is Compile of a profile whose deviations were found too small: of Widened. Where that is the profile itself it is
// Compile. Least capacities never fall as the spread grows.
func Spread(p Profile, total, thetaPPM, permille int64) (Table, error) {
	if err := check(p, total, thetaPPM); err != nil {
		return Table{}, err
	}
	return Compile(Widened(p, permille), total, thetaPPM)
}

// Widened is the profile with its deviations multiplied by a spread in parts per thousand; one below Unscaled counts as that
// and changes nothing, one above MaxSpread as that. The profile must be one that Compile accepts; it is not changed.
//
// A profile is widened when it has been shown to be wrong (market/trust). So a phase that claims to be exact, or nearly, is not
// believed any more: before it is multiplied its deviation is raised to 2% of the mean, or no spread would ever help. Recorded
// runs and envelopes have no deviations to multiply. Theirs are quantiles already, a few deviations above a mean that is not
// known; each further spread of one raises them by a tenth, which at a theta of .01 is what it does to a phase whose deviation
// is 4% of its mean. Amounts end at MaxAmount.
func Widened(p Profile, permille int64) Profile {
	permille = min(permille, MaxSpread)
	if permille <= Unscaled {
		return p
	}
	raised := func(a quantity.Amount) quantity.Amount {
		extra := quantity.MulDiv(int64(a), quantileMargin*(permille-Unscaled), Unscaled*Unscaled)
		return min(MaxAmount, a+quantity.Amount(extra))
	}
	p.Phases = slices.Clone(p.Phases)
	for i := range p.Phases {
		ph := &p.Phases[i]
		sd := max(int64(ph.SD), quantity.MulDiv(int64(ph.Mean), leastDeviation, Unscaled))
		ph.SD = min(MaxAmount, quantity.Amount(quantity.MulDiv(sd, permille, Unscaled)))
	}
	p.Curve = slices.Clone(p.Curve)
	for i := range p.Curve {
		p.Curve[i].Amount = raised(p.Curve[i].Amount)
	}
	runs := make([][]quantity.Amount, len(p.Runs))
	for i, run := range p.Runs {
		runs[i] = make([]quantity.Amount, len(run))
		for j, a := range run {
			runs[i][j] = raised(a)
		}
	}
	p.Runs = runs
	return p
}
