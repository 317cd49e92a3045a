package forecast

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// MaxRuns bounds the runs that are remembered of one template; the newest stay. Enough for theta .004.
const MaxRuns = 256

// Sample is the newest observations of one quantity, in order of age and of size. The zero value keeps MaxRuns.
//
// A window over exchangeable observations is exchangeable with the next, so that forgetting costs sharpness and no
// guarantee; where the series drifts, a short window follows it.
type Sample struct {
	// Most observations are kept; 0 stands for MaxRuns.
	Most   int
	aged   []int64 // a ring once it is full
	oldest int
	sorted []int64
}

// Add an observation; the oldest goes where there are too many.
func (s *Sample) Add(x int64) {
	most := s.Most
	if most <= 0 {
		most = MaxRuns
	}
	if len(s.aged) < most {
		s.aged = append(s.aged, x)
	} else {
		at, _ := slices.BinarySearch(s.sorted, s.aged[s.oldest])
		s.sorted = slices.Delete(s.sorted, at, at+1)
		s.aged[s.oldest] = x
		s.oldest = (s.oldest + 1) % most
	}
	at, _ := slices.BinarySearch(s.sorted, x)
	s.sorted = slices.Insert(s.sorted, at, x)
}

// Upper is what the next observation passes with a chance of at most theta (parts per million), if it is exchangeable with
// those kept. ok is false where they are too few for any finite bound; the largest is then returned, 0 if there is none: the
// next passes it with a chance of at most 1/(Len+1).
func (s *Sample) Upper(theta int64) (bound int64, ok bool) {
	n := len(s.sorted)
	if n == 0 {
		return 0, false
	}
	// Level asks for any theta, also for one that covers everything or nothing.
	k, ok := Rank(n, max(0, min(One, theta)))
	return s.sorted[max(0, min(k, n)-1)], ok
}

// Recent bounds the next hour of a series by the most of its last hours times a margin. It promises nothing: of the rules that
// do, each came to passing its bound more often than asked on hours that it was not chosen on. It is what is left when every
// choice is made by hours before those that it is judged on (ADR 0015).
type Recent struct {
	// Window that is looked back over; Margin in parts per million of the most seen in it, at least One.
	Window time.Duration
	Margin int64
}

// DefaultRecent is the rule that is passed in at most 1% of the hours at the least cost, as far as is known.
func DefaultRecent() Recent { return Recent{Window: 3 * time.Hour, Margin: 1_450_000} }

// Upper is the bound for a window of which most was the most, 0 or more; rounded up, at most the largest amount.
func (r Recent) Upper(most quantity.Amount) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(most), r.Margin, One))
}

// One is a chance, or a ratio, of 1 in parts per million.
const One = 1_000_000

// Rank is the place, from 1, of the order statistic of n observations that the next one passes with a chance of at most
// theta (in parts per million, 1 to One-1): k = ceil((n+1)(1-theta)). ok is false where k > n: then only an infinite bound
// has that guarantee.
//
// Proof. Let the n+1 observations be exchangeable, and ties broken at random. The next one is equally likely to hold each of
// the n+1 places among them all. It passes the k-th smallest of the others only from places k+1 to n+1, so with a chance of
// at most (n+1-k)/(n+1) <= theta. Ties only help. (Vovk, Gammerman and Shafer 2005; Lei et al. 2018.)
func Rank(n int, theta int64) (k int, ok bool) {
	k = int(quantity.MulDiv(int64(n)+1, One-theta, One))
	return k, k <= n
}

// LeastRuns is the least number of observations from which Rank has a finite bound: ceil(1/theta)-1, 99 at .01. The largest
// of them is then the bound.
func LeastRuns(theta int64) int { return int(quantity.MulDiv(One, 1, theta)) - 1 }
