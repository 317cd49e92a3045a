package forecast

import "sluice.dev/sluice/internal/core/quantity"

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
