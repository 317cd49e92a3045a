package trp

import (
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// confidence is that of the one-sided Clopper-Pearson bound: a profile that is worse than theta passes it with a chance
// of at most 1-confidence.
const confidence = 0.95

// UpperBound is the one-sided 95% Clopper-Pearson upper bound of a chance of which k of n independent trials showed the
// event (Clopper and Pearson 1934): the p at which k or fewer have a chance of 5%. It is 1 for k >= n and for n < 1.
func UpperBound(n, k int) float64 {
	if n < 1 || k >= n {
		return 1
	}
	if k < 0 {
		return 0
	}
	lo, hi := 0.0, 1.0
	for {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			return hi
		}
		if atMost(n, k, mid) > 1-confidence {
			lo = mid
		} else {
			hi = mid
		}
	}
}

// LeastCleanRuns is how many recorded runs without any excess certify thetaPPM (parts per million, 1 to MaxThetaPPM):
// the least n with (1-theta)^n <= 5%. 299 certify .01.
func LeastCleanRuns(thetaPPM int64) int {
	theta := float64(thetaPPM) / 1e6
	n := max(1, int(math.Log(1-confidence)/math.Log1p(-theta)))
	for n > 1 && atMost(n-1, 0, theta) <= 1-confidence {
		n--
	}
	for atMost(n, 0, theta) > 1-confidence {
		n++
	}
	return n
}

// atMost is the chance of at most k events in n trials of chance p, 0 < p < 1.
func atMost(n, k int, p float64) float64 {
	logP, logQ := math.Log(p), math.Log1p(-p)
	var sum float64
	var choose float64 // log of n over i
	for i := 0; i <= k; i++ {
		if i > 0 {
			choose += math.Log(float64(n-i+1)) - math.Log(float64(i))
		}
		sum += math.Exp(choose + float64(float64(i)*logP) + float64(float64(n-i)*logQ))
	}
	return min(sum, 1)
}

// mostExcesses is the largest number of runs of n that may pass a capacity which is still certified for theta, -1 if
// not even none will do.
func mostExcesses(n int, theta float64) int {
	k := -1
	for k+1 < n && atMost(n, k+1, theta) <= 1-confidence {
		k++
	}
	return k
}

// compileEnsemble takes, for every run of stretches, the recorded peaks in falling order: the capacity at which just as
// many runs pass as the bound allows.
func compileEnsemble(p Profile, thetaPPM int64) Table {
	t := triangle(slices.Clone(bounds(p)))
	k := mostExcesses(len(p.Runs), float64(thetaPPM)/1e6)
	peaks := make([]quantity.Amount, len(p.Runs))
	sorted := make([]quantity.Amount, len(p.Runs))
	for i := range t.Least {
		clear(peaks)
		for j := range t.Least[i] {
			for r, run := range p.Runs {
				peaks[r] = max(peaks[r], run[i+j])
			}
			copy(sorted, peaks)
			slices.Sort(sorted)
			t.Least[i][j] = sorted[len(sorted)-1-k]
		}
	}
	return t
}

// excesses counts the runs whose peak over stretches [first, last] passes c.
func excesses(runs [][]quantity.Amount, first, last int, c quantity.Amount) int {
	n := 0
	for _, run := range runs {
		if slices.Max(run[first:last+1]) > c {
			n++
		}
	}
	return n
}
