package forecast

import (
	"math"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Envelope is a profile that the whole next run stays below with a chance of at least 1-theta, for a job of total units, at
// least 1: one bound for all its stretches at once, so also for every piece of it. ok is false where too few runs are
// remembered; it is then what they used at most.
//
// It is split conformal prediction (Vovk and others; Lei et al. 2018). The older runs give a shape, their highest use in
// each stretch; the newer ones, half of them and at least LeastRuns, are held against it: the score of a run is the largest
// ratio of use to shape, and the order statistic of the scores scales the shape. The shape does not depend on the newer
// runs, so their scores and the next run's are exchangeable. With no run to spare the shape is flat, and the bound is one of
// whole-run peaks.
func (r *Runs) Envelope(total, theta int64) (p trp.Profile, ok bool) {
	bounds := ends(r.finest(), total)
	judges := max(LeastRuns(theta), (len(r.List)+1)/2)
	older, newer := r.List[:max(0, len(r.List)-judges)], r.List[max(0, len(r.List)-judges):]
	shape := shape(older, bounds)
	scores := make([]quantity.Amount, 0, len(newer))
	for i := range newer {
		score := int64(0)
		from := int64(0)
		for j, to := range bounds {
			score = max(score, quantity.MulDiv(int64(newer[i].over(total, from, to)), One, int64(shape[j])))
			from = to
		}
		scores = append(scores, quantity.Amount(score))
	}
	k, ok := Rank(len(scores), theta)
	scale := int64(smallest(scores, k))
	p.Form = trp.Envelope
	for j, to := range bounds {
		amount := trp.MaxAmount
		if scale < math.MaxInt64 { // else a ratio did not fit
			amount = min(amount, quantity.Amount(quantity.MulDiv(int64(shape[j]), scale, One)))
		}
		p.Curve = append(p.Curve, trp.Point{UpTo: to, Amount: amount})
	}
	return p, ok
}

// shape is the highest use of any run in each stretch, at least 1; without runs it is flat, and high enough that a ratio to
// it loses nothing.
func shape(runs []Run, bounds []int64) []quantity.Amount {
	shape := make([]quantity.Amount, len(bounds))
	total, from := bounds[len(bounds)-1], int64(0)
	for j, to := range bounds {
		shape[j] = 1
		if len(runs) == 0 {
			shape[j] = One
		}
		for i := range runs {
			shape[j] = max(shape[j], runs[i].over(total, from, to))
		}
		from = to
	}
	return shape
}

// Len is how many observations are kept.
func (s *Sample) Len() int { return len(s.sorted) }
