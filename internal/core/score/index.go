package score

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
)

// An index spans many powers of ten: of two jobs one may be over in a second, the other in a year. So its feature counts octaves, and a
// score that holds it is the logarithm of a *rate*, what a millisecond of the slice is worth with that variant: the weights of features
// say how many octaves each may add. Scores are compared, rates can be added up. Under an index alone the rate is the index itself, to
// the last digit.

// octaves that the feature spans: an index of 2^octaves and more counts as One.
const octaves = 45

// fraction is how many binary digits of an octave are computed.
const fraction = 20

// Index is the feature of an index: its logarithm to base 2 as a share of octaves, rounded down. A greater index has no less.
func Index(x int64) int64 {
	if x <= 1 {
		return 0
	}
	return min(One, int64(log2(uint64(x))*One/(octaves<<fraction)))
}

// log2 of a number above 0, with fraction binary digits, rounded down.
func log2(x uint64) uint64 {
	n := bits.Len64(x) - 1
	m := x << (63 - n)
	sum := uint64(n)
	for range fraction { // each square doubles the logarithm
		m, _ = bits.Mul64(m, m)
		if sum <<= 1; m >= 1<<63 {
			sum |= 1
		} else {
			m <<= 1
		}
	}
	return sum
}

// exp2 is 2 to the power of x, which has fraction binary digits and is below 62, rounded down.
func exp2(x uint64) int64 {
	// roots of 2: the second, the fourth and so on, less 1, in parts of 2^64.
	roots := [fraction]uint64{
		0x6a09e667f3bcc908, 0x306fe0a31b7152de, 0x172b83c7d517adcd, 0x0b5586cf9890f629, 0x059b0d31585743ae, 0x02c9a3e778060ee6,
		0x0163da9fb33356d8,
		0x00b1afa5abcbed61, 0x0058c86da1c09ea1, 0x002c605e2e8cec50, 0x00162f3904051fa1, 0x000b175effdc76ba, 0x00058ba01fb9f96d,
		0x0002c5cc37da9491,
		0x000162e525ee0547, 0x0000b17255775c04, 0x000058b91b5bc9ae, 0x00002c5c89d5ec6c, 0x0000162e43f4f831, 0x00000b1721bcfc99,
	}
	m := uint64(1 << 62)
	for i, root := range roots {
		if x>>(fraction-1-i)&1 == 1 {
			hi, _ := bits.Mul64(m, root)
			m += hi
		}
	}
	return int64(m >> (62 - x>>fraction)) //nolint:gosec // below 2^63
}

// Rates says whether scores are logarithms of rates.
func (w Weights) Rates() bool { return w.System.Index > 0 && w.Lambda < One }

// ByIndex says whether the index alone is weighed.
func (w Weights) ByIndex() bool { return w.Lambda == 0 && w.System.Index == One }

// Rate is what a millisecond of the slice is worth with a variant, 1 to MaxWeight, by its job's own score, the sum of the system's
// features, its job's index, and its precedence, in parts of 2^10, as far as the index does not hold that already.
func (w Weights) Rate(job, sum, index, precedence int64) int64 {
	if w.ByIndex() {
		return max(1, min(index, MaxWeight))
	}
	total := w.Lambda*unit(job) + quantity.MulDiv(One-w.Lambda, sum, One) // in parts of One x One
	rest := One - quantity.MulDiv(One-w.Lambda, w.System.Index, One)      // what is not the index's
	x := quantity.MulDiv(total, octaves<<fraction, One*One)
	if precedence > 0 && precedence != 1<<10 {
		x += (int64(log2(uint64(precedence))) - 10<<fraction) * rest / One
	}
	return max(1, min(exp2(uint64(min(max(0, x), 61<<fraction))), MaxWeight))
}

// MostRate is the greatest Rate of a variant of a job with this index and precedence, whatever its other features.
func (w Weights) MostRate(index, precedence int64) int64 {
	if w.ByIndex() {
		return max(1, min(index, MaxWeight))
	}
	return w.Rate(One, (One-w.System.Index)*One+Index(index)*w.System.Index, index, precedence)
}

// Worth is what a variant at a rate counts for in clearing, 1 to MaxWeight, by its run and its lease in milliseconds. The run is worth
// something, the rest of the lease is not. Where the window ends that is what the whole run is worth, an hour at the rate being the unit:
// what is added up is the work that a plan does. Without an end others would go on behind each piece, and what is worth most in a
// millisecond goes first.
func Worth(rate, run, lease int64, ends bool) int64 {
	const hour = 3_600_000
	lease = max(1, lease)
	if run <= 0 { // nobody knows
		run = lease
	}
	if run = min(run, lease); ends {
		lease = hour
	}
	return max(1, min(quantity.MulDiv(rate, run, lease), MaxWeight))
}
