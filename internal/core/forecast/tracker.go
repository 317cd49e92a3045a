package forecast

import (
	"math"

	"sluice.dev/sluice/internal/core/quantity"
)

// Tracker multiplies a base predictor by a factor that goes up with every miss and down with every hit, so that a share
// theta is missed in the long run whatever the series and the base do: the quantile tracker of conformal PID control
// (Angelopoulos, Candes and Tibshirani, NeurIPS 2023, equation 3 and proposition 1). It needs three integers and no window:
// it is what one job can afford.
//
// Guarantee, for every sequence: after T observations
//
//	|misses/T - theta| <= (Max + gamma) / (gamma T).
//
// Proof. Let q be the factor, from 0 to Max at the start, e 1 for a miss and else 0. Each step adds gamma(e-theta). Where
// q >= Max the bound is infinite, there is no miss, and q falls; where q < 0 the bound is negative, every observation misses,
// and q grows. So -gamma*theta <= q <= Max + gamma(1-theta) always. The steps add up: gamma * sum(e-theta) = q(T+1) - q(1),
// which is at most Max + gamma in size; divide by gamma T. The arithmetic is exact, so that the bound is. Where outcomes are
// known d observations late, q may go d steps further: read (d+1) gamma for gamma in the first bracket.
type Tracker struct {
	// Theta in parts per million (1 to One-1). Gamma is the step and Max the factor that no observation passes, both in parts
	// per million of the base: 1 to 1000 One, a thousand times the base.
	Theta, Gamma, Max int64
	// Factor in millionths of a part per million of the base; set it with Start.
	Factor int64
}

// Start sets the factor, in parts per million of the base, 0 to Max.
func (t *Tracker) Start(factor int64) { t.Factor = factor * One }

// Upper is the bound for a base of 0 or more, rounded up; ok is false where the factor has reached Max and only the whole
// slice will do.
func (t *Tracker) Upper(base quantity.Amount) (bound quantity.Amount, ok bool) {
	switch {
	case t.Factor >= t.Max*One:
		return math.MaxInt64, false
	case t.Factor < 0:
		return -1, true
	}
	return quantity.Amount(quantity.MulDiv(int64(base), t.Factor, One*One)), true
}

// Saw takes an observation of 0 or more, for which Upper said bound with ok, and reports whether that was a miss.
func (t *Tracker) Saw(observed, bound quantity.Amount, ok bool) bool {
	missed := ok && observed > bound
	t.Factor -= t.Gamma * t.Theta
	if missed {
		t.Factor += t.Gamma * One
	}
	return missed
}
