package trp

import (
	"math"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
)

// Peak is the probable peak of a piece: what is needed of its distribution to add several up. The zero value is one that nobody has said.
type Peak struct {
	// Mean and Deviation of the peak, rounded up.
	Mean, Deviation quantity.Amount
}

// Mix mixes a peak into a digest.
func (p *Peak) Mix(h digest.Hash) digest.Hash {
	if *p == (Peak{}) { // as it was before there were peaks
		return h
	}
	return h.Int(int64(p.Mean), int64(p.Deviation))
}

// Scaled is the peak at a scale, as needs are (Unscaled).
func (p Peak) Scaled(scale int64) Peak {
	return Peak{scaled(p.Mean, scale), scaled(p.Deviation, scale)}
}

// Quantile is by how many deviations, in millionths and rounded up, a normal variable passes its mean with a chance of at most ppm parts
// per million: 2,326,348 for .01. It is 0 for one half or more.
func Quantile(ppm int64) int64 {
	if ppm >= MaxThetaPPM {
		return 0
	}
	lo, hi := int64(0), int64(10_000_000) // Q(10) is far below a millionth
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if upper(float64(mid)/1e6) <= float64(ppm)/1e6 {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// Beyond is the chance, in parts per million, that a normal variable passes its mean by so many millionths of its deviation. It is for
// display: decisions compare amounts.
func Beyond(millionths int64) int64 { return int64(math.Round(1e6 * upper(float64(millionths)/1e6))) }

// upper is the upper tail of the standard normal distribution.
func upper(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }

// leastQuantile is the quantile below which theta does not determine the deviation.
const leastQuantile = 100_000

// PeakOver is the peak of the units [from, to), whose demand at this scale is what the scheduler sells the piece with.
//
// Its distribution is the one that theta bounds: that of phases with their chances of excess combined in the profile's own way (of the
// three, union is the largest, so sums of it are too), that of recorded runs as they are. A piece of several phases is skewed, so the
// deviation is widened until the normal distribution has the demand for its theta-quantile: alone on a host it is judged as it is on a
// slice. The part of the demand beyond the profile's own quantile was learned and is certain: it is added to the mean. An envelope gives
// only the quantile: that is the mean, without deviation.
//
// The profile must be one that Compile accepts.
func PeakOver(p *Profile, from, to, scale, thetaPPM int64, demand quantity.Amount) Peak {
	t := Table{Bounds: bounds(*p)}
	to = min(to, t.Total())
	if from = max(from, 0); from >= to || p.Form == Envelope || demand <= 0 {
		return Peak{Mean: demand}
	}
	i, j := t.stretch(from), t.stretch(to-1)
	var peak Peak
	own := demand
	if p.Form == Phases {
		phases := p.Phases[i : j+1]
		peak = peakOfPhases(phases, p.Combine).Scaled(scale)
		own = scaled(leastAbove(0, phases, p.Combine, float64(thetaPPM)/1e6), scale)
	} else {
		peak = peakOfRuns(p.Runs, i, j).Scaled(scale)
	}
	if demand > own {
		peak.Mean += demand - own
	}
	if peak.Mean >= demand {
		return Peak{Mean: demand}
	}
	if z := Quantile(thetaPPM); z >= leastQuantile {
		matched := quantity.Amount(quantity.MulDiv(int64(demand-peak.Mean), 1_000_000, z))
		if peak.Deviation = max(peak.Deviation, matched); demand < own {
			peak.Deviation = matched // less was learned than was declared
		}
	}
	return peak
}

// panels of the integral over the tail of several phases. With this many its mean is off by at most some hundredths of a deviation.
const panels = 256

// peakOfPhases has the mean and the deviation of the peak over phases: integrals of the tail.
func peakOfPhases(phases []Phase, how Combine) Peak {
	if len(phases) == 1 {
		return Peak{phases[0].Mean, phases[0].SD}
	}
	var lo, hi quantity.Amount
	for _, ph := range phases { // below lo the peak never is, above hi never
		lo, hi = max(lo, ph.Mean-8*ph.SD), max(hi, ph.Mean+8*ph.SD)
	}
	width := float64(hi-lo) / panels
	var first, second float64 // of the peak above lo: its mean, and half of its mean square
	for k := range panels {
		at := float64((float64(k) + .5) * width)
		q := phasesExcess(phases, how, lo+quantity.Amount(at))
		first += float64(q * width)
		second += float64(float64(q*width) * at)
	}
	return rounded(float64(lo), first, float64(2*second))
}

// peakOfRuns has the mean and the deviation of recorded peaks over stretches first to last.
func peakOfRuns(runs [][]quantity.Amount, first, last int) Peak {
	base, sum, squares := 0.0, 0.0, 0.0
	for n, run := range runs {
		var peak quantity.Amount
		for _, a := range run[first : last+1] {
			peak = max(peak, a)
		}
		if n == 0 {
			base = float64(peak)
		}
		d := float64(peak) - base
		sum, squares = sum+d, squares+float64(d*d)
	}
	n := float64(max(2, len(runs)))
	mean := sum / n
	return rounded(base, mean, float64(squares/n)+float64(float64(squares/n)-float64(mean*mean))/(n-1))
}

// rounded is a peak that is base and something whose mean and mean square are known.
func rounded(base, mean, square float64) Peak {
	return Peak{
		Mean:      min(MaxAmount, quantity.Amount(math.Ceil(base+mean))),
		Deviation: min(MaxAmount, quantity.Amount(math.Ceil(math.Sqrt(max(0, square-float64(mean*mean)))))),
	}
}
