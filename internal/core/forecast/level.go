package forecast

// Level adapts the theta at which a window of past scores is read so that, in the long run, a share theta is missed
// whatever the series does: adaptive conformal inference (Gibbs and Candes, NeurIPS 2021, equation 2 and proposition 4.1).
// Use: bound by Sample.Upper(l.At()), but by the whole slice where Whole or where that has no bound, and by nothing at all
// where Nothing; then tell Saw whether the observation passed the bound.
//
// Guarantee, for every sequence: after T observations
//
//	|misses/T - theta| <= (max(theta, 1-theta) + gamma) / (gamma T).
//
// Proof. Let a be the level, e 1 for a miss and else 0. Each step adds gamma(theta-e). Where a <= 0 there is no miss, so that
// a grows, and where a >= 1 there is one, so that it falls; one step moves it by less than gamma. So -gamma < a < 1+gamma
// always. The steps add up: gamma * sum(theta-e) = a(T+1) - a(1), with a(1) = theta; divide by gamma T. The arithmetic is
// exact, so that the bound is. Where outcomes are known d observations late, a may go d steps further: read (d+1) gamma for
// gamma in the first bracket.
type Level struct {
	// Theta and Gamma (the step) are in parts per million, 1 to One-1. A large step follows a drift sooner and wavers more.
	Theta, Gamma int64
	// Moved is how far the level has gone from Theta, in millionths of a part per million.
	Moved int64
}

// At is the theta to read the window at, in parts per million, rounded to the safe side.
func (l *Level) At() int64 { return floorDiv(l.Theta*One+l.Moved, One) }

// Whole says that only a bound that nothing can pass will do.
func (l *Level) Whole() bool { return l.Theta*One+l.Moved <= 0 }

// Nothing says that so little was missed that the next is to be missed whatever it is.
func (l *Level) Nothing() bool { return l.Theta*One+l.Moved >= One*One }

// Saw takes one outcome: whether the observation passed the bound that was in force for it. Where that was the whole slice it
// did not, where it was nothing it did.
func (l *Level) Saw(missed bool) {
	l.Moved += l.Gamma * l.Theta
	if missed {
		l.Moved -= l.Gamma * One
	}
}

// SawShare takes a batch of outcomes that were predicted at once, misses of n of them (1 to a million), as one step of the mean of
// their steps. The guarantee then is for the mean over batches of the share missed, up to the rounding of one millionth of a
// part per million a step.
func (l *Level) SawShare(misses, n int64) {
	l.Moved += l.Gamma*l.Theta - floorDiv(l.Gamma*One*misses, n)
}

// floorDiv is a/b rounded down, for a positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
