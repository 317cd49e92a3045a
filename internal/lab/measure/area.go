package measure

import (
	"math"
	"math/bits"
)

// area is an exact sum of products, such as bytes times nanoseconds, in 128 bits: no order of events changes it, and no
// trace is long enough to overflow it.
type area struct{ hi, lo uint64 }

// add adds n*x; both are at least 0.
func (a *area) add(n, x int64) {
	hi, lo := bits.Mul64(uint64(n), uint64(x))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi, _ = bits.Add64(a.hi, hi, carry)
}

// float is the sum rounded to a float.
func (a *area) float() float64 { return float64(a.hi)*(1<<64) + float64(a.lo) }

// ratio is a/b, NaN if b is nothing.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return math.NaN()
	}
	return a / b
}
