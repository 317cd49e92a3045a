// Package sample sums up measured values. Every function takes them in order, smallest first, and at least one.
package sample

import (
	"slices"
	"time"
)

// Median is the middle one, or the mean of the two in the middle.
func Median(v []float64) float64 {
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Quantile is the smallest that p parts per hundred of them do not pass.
func Quantile(v []float64, p int) float64 {
	return v[max(0, (len(v)*p+99)/100-1)]
}

// Ordered is a copy of v in order.
func Ordered(v []float64) []float64 { return slices.Sorted(slices.Values(v)) }

// Milliseconds of a length of time.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
