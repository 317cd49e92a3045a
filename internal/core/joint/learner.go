package joint

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	// mostRecent subjobs that have ended are compared with the next one.
	mostRecent = 32
	// mostPairs are remembered: beyond that the older ones count half, so that what is learned can change.
	mostPairs = 1024
	// furthest is how far from its mean a peak counts, in thousandths of its deviation: one that was foreseen wrongly by far is the
	// profile's affair, and not all others'.
	furthest = 3000
	// margin is by how many of its own deviations the mean of the products is raised.
	margin = 2
)

// Learner estimates the correlation of peaks from subjobs that have ended: how far all that ran together on a host were above or below
// their means together. Of every two that did, the product of their distances from the mean, each in deviations, is one sample: its mean
// is the correlation, where every two have the same, and the deviation of that mean is the root of one over their number where there is
// none. The estimate is the mean, 0 at least, and twice that deviation: with n pairs of independent peaks it is at most 2/sqrt(n) too high
// on average, and too low with a chance of .02. Of none it is Whole, which is sound whatever they are: then a host is full when the sum of
// the quantiles is. Means that are all too high, or all too low, look like a correlation, which errs to the safe side.
//
// All of it is soft. The zero value has learned nothing.
type Learner struct {
	pairs, products int64 // products in thousandths
	recent          [mostRecent]ended
	next            int
}

// ended is a subjob with how far its peak was from its mean.
type ended struct {
	from, to quantity.Instant
	distance int64
}

// Observe records a subjob that has run for [from, to) to its end, with its foreseen and its real peak. It does nothing if no deviation was
// foreseen.
func (l *Learner) Observe(from, to quantity.Instant, foreseen trp.Peak, peak quantity.Amount) (learned bool) {
	if foreseen.Deviation <= 0 || peak <= 0 || from >= to {
		return false
	}
	e := ended{from, to, distance(peak-foreseen.Mean, foreseen.Deviation)}
	for i := range l.recent {
		if r := &l.recent[i]; r.from < to && from < r.to {
			l.pairs++
			l.products += r.distance * e.distance / 1000
			learned = true
		}
	}
	if l.pairs >= mostPairs {
		l.pairs, l.products = l.pairs/2, l.products/2
	}
	l.recent[l.next] = e
	l.next = (l.next + 1) % mostRecent
	return learned
}

// distance in thousandths of a deviation.
func distance(from, deviation quantity.Amount) int64 {
	if from < 0 {
		return -min(furthest, quantity.MulDiv(int64(-from), 1000, int64(deviation)))
	}
	return min(furthest, quantity.MulDiv(int64(from), 1000, int64(deviation)))
}

// Correlation is the estimate, in parts per thousand.
func (l *Learner) Correlation() int64 {
	if l.pairs == 0 {
		return Whole
	}
	return min(Whole, max(0, l.products/l.pairs)+margin*inverseRoot(l.pairs))
}

// inverseRoot is 1000 over the root of n, rounded up; n is at least 1.
func inverseRoot(n int64) int64 {
	hi, lo := bits.Div64(0, 1_000_000, uint64(n))
	if lo != 0 {
		hi++
	}
	return int64(uint128{0, hi}.root())
}
