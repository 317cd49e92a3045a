package flow

import (
	"math"
	"math/bits"
)

// unit is what one column of an alias table holds: shares of Z zones are counted in 2^-32 of 1/Z, and sum to Z units.
const unit = 1 << 32

// MaxZones bounds how many zones a flow has, so that sums of weights stay within 63 bits.
const MaxZones = 1 << 16

// maxBase bounds the free fragments that count, in thousandths of one.
const maxBase = 1 << 36

// weight is the weight of a zone for a class (adr 0036): max(eps, h - gamma q)^alpha (1-pressure)^beta alive, at most 2^46. Where the
// exponents are 1, as by default, it is exact; else it is rounded to a millionth, and at least 1.
func (c *Config) weight(d *Digest, class Class) uint64 {
	if !d.Alive {
		return 0
	}
	base := 1000*int64(d.Free[class]) - c.Gamma*int64(d.Demand[class])
	base = min(max(base, c.Epsilon), maxBase)
	keep := 1000 - min(int64(d.Pressure), 1000)
	if c.Alpha == 1000 && c.Beta == 1000 {
		return uint64(base * keep)
	}
	w := math.Pow(float64(base)/1000, float64(c.Alpha)/1000) * math.Pow(float64(keep)/1000, float64(c.Beta)/1000)
	return uint64(min(max(math.Round(w*1e6), 1), 1<<46))
}

// shares turns the weights of all zones into shares in place: what each is drawn with in units of 2^-32/Z, Z*unit together. A
// live zone has Floor/Z at least; who has more than that shares what is left by weight. ok is false if no zone is live.
//
// A zone whose share by weight is below (Floor/Z)/(1-Floor) gets Floor/Z. There are fewer than all of these, and what they get
// is at most Floor, so that the others keep 1-Floor of their share or more, and none of them falls below Floor/Z.
func (c *Config) shares(weights []uint64, live []bool) (ok bool) {
	zones := uint64(len(weights))
	sum, count := uint64(0), uint64(0)
	for i, w := range weights {
		sum += w
		if live[i] {
			count++
		}
	}
	if count == 0 {
		return false
	}
	if sum == 0 { // all are under full pressure
		for i := range weights {
			if live[i] {
				weights[i], sum = 1, sum+1
			}
		}
	}
	floor := unit * uint64(c.Floor) / 1000
	low := muldiv(floor, 1000, uint64(1000-c.Floor)) // in units of 2^-32/Z
	total, rest := zones*unit, uint64(0)             // rest: the weight of those above the floor
	left := total
	for i, w := range weights {
		switch {
		case !live[i]:
		case muldiv(w, total, sum) < low:
			left -= floor
		default:
			rest += w
		}
	}
	given, last := uint64(0), -1
	for i, w := range weights {
		switch {
		case !live[i]:
			weights[i] = 0
		case muldiv(w, total, sum) < low:
			weights[i] = floor
		default:
			weights[i] = muldiv(w, left, rest)
			given, last = given+weights[i], i
		}
	}
	weights[last] += left - given // what rounding down has left over: less than 2^-32 in all
	return true
}

// muldiv is a*b/c rounded down; a*b/c must be below 2^64.
func muldiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}
