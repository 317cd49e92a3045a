package trp

import (
	"math"

	"sluice.dev/sluice/internal/core/quantity"
)

// tail is the chance that a phase's peak passes capacity c: Q((c-mu)/sigma), the upper tail of the normal distribution
// . A phase without deviation passes exactly the capacities below its mean.
func tail(ph Phase, c quantity.Amount) float64 {
	if ph.SD == 0 {
		if c >= ph.Mean {
			return 0
		}
		return 1
	}
	return 0.5 * math.Erfc(float64(c-ph.Mean)/float64(float64(ph.SD)*math.Sqrt2))
}

// phasesExcess is the chance that the peak over all the phases passes c. The three ways are ordered exactly, union >=
// independent >= maximum, whatever the rounding.
func phasesExcess(phases []Phase, how Combine, c quantity.Amount) float64 {
	var sum, logs, top float64
	for _, ph := range phases {
		q := tail(ph, c)
		sum += q
		top = max(top, q)
		if how == Independent {
			logs += math.Log1p(-q)
		}
	}
	sum = min(sum, 1)
	switch how {
	case Independent:
		// 1 - prod(1-q), written so that small chances keep their digits.
		return min(sum, max(top, -math.Expm1(logs)))
	case Maximum:
		return top
	default:
		return sum
	}
}

// compilePhases finds every threshold by bisection on phasesExcess itself, so that a threshold decides as the plain
// evaluation would.
func compilePhases(p Profile, thetaPPM int64) Table {
	t := triangle(bounds(p))
	theta := float64(thetaPPM) / 1e6
	for i := len(t.Bounds) - 1; i >= 0; i-- {
		for k := range t.Least[i] {
			// More phases never need less; the floor also keeps the order where tails are rounded differently.
			var floor quantity.Amount
			if k > 0 {
				floor = max(t.Least[i][k-1], t.Least[i+1][k-1])
			}
			t.Least[i][k] = leastAbove(floor, p.Phases[i:i+k+1], p.Combine, theta)
		}
	}
	return t
}

// leastAbove is the least integer capacity, not below floor, at which the excess is at most theta.
func leastAbove(floor quantity.Amount, phases []Phase, how Combine, theta float64) quantity.Amount {
	if phasesExcess(phases, how, floor) <= theta {
		return floor
	}
	// Q(39) is below the smallest float, so the excess is 0 at hi.
	hi := floor
	for _, ph := range phases {
		hi = max(hi, ph.Mean+40*ph.SD)
	}
	lo := floor // excess(lo) > theta >= excess(hi)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if phasesExcess(phases, how, mid) <= theta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
