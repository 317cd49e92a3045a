package ends

import "sluice.dev/sluice/internal/core/forecast"

// Guard says how sure predictions must be so that at most a share theta of them fails in the long run, whatever the gaps do: adaptive
// conformal inference (forecast.Level), held on one side.
//
// Guarantee, for every sequence: after T outcomes misses/T <= theta + (theta + gamma)/(gamma T).
//
// Proof. As forecast.Level has it, each outcome adds gamma(theta-e) to the level, and where the level is 0 or less nothing is
// predicted to last, so that nothing fails: the level stays above -gamma. Holding it at Most or below only takes away from it. So
// gamma * sum(e-theta) <= theta - level(T+1) < theta + gamma; divide by gamma T. Where outcomes come d predictions late the level may go
// d steps further: read (d+1) gamma for gamma in the first bracket.
//
// It is held because subjobs that end before their bound never fail: their level would rise without end, and the first that need
// their bound after gaps have changed would pay for all of them.
type Guard struct{ level forecast.Level }

// DefaultTheta is the default share, in parts per million (docs/leftover.md shows the effect of others).
const DefaultTheta = 100_000

// gamma is the step in parts per million: so half of a theta of .1 is gone after three failures in a row.
const gamma = 20_000

// most is what the level is held at, in multiples of theta.
const most = 2

// NewGuard for a theta in parts per million, 1 to 999,999.
func NewGuard(theta int64) Guard {
	return Guard{forecast.Level{Theta: theta, Gamma: gamma}}
}

// At is the chance of failure to predict with, in parts per million.
func (g *Guard) At() int64 { return max(0, g.level.At()) }

// Saw takes the outcome of one prediction.
func (g *Guard) Saw(failed bool) {
	g.level.Saw(failed)
	g.level.Moved = min(g.level.Moved, (most-1)*g.level.Theta*forecast.One)
}
