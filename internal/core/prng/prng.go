// Package prng is randomness as a value: a stream is a function of its keys, never of how often somebody else has drawn,
// so that adding a draw in one place changes nothing in another. The generator is SplitMix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014).
package prng

import (
	"math"
	"math/bits"
)

// Stream is a sequence of random numbers. The zero value is a valid stream. It is a value: a copy goes on alone.
type Stream struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// New is the stream of a list of keys: a seed, then what it is for.
func New(keys ...uint64) Stream {
	s := Stream{state: golden}
	for _, k := range keys {
		s.state = mix(s.state ^ mix(k+golden))
	}
	return s
}

// Name turns a text into a key (FNV-1a).
func Name(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uint64 is uniform over all 64-bit numbers.
func (s *Stream) Uint64() uint64 {
	s.state += golden
	return mix(s.state)
}

// IntN is uniform over [0, n); n must be positive. It has no modulo bias (Lemire, 2019).
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic("prng: IntN needs a positive bound")
	}
	m := uint64(n)
	hi, lo := bits.Mul64(s.Uint64(), m)
	for floor := -m % m; lo < floor; {
		hi, lo = bits.Mul64(s.Uint64(), m)
	}
	return int(hi)
}

// Float64 is uniform over [0, 1) in steps of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Exp is exponential with mean 1.
func (s *Stream) Exp() float64 { return -math.Log(1 - s.Float64()) }

// Normal is the standard normal distribution (Box and Muller; one of the pair is dropped, so that a draw is one draw).
func (s *Stream) Normal() float64 {
	return math.Sqrt(2*s.Exp()) * math.Cos(2*math.Pi*s.Float64())
}

// Shuffle puts n things in a uniformly random order (Fisher and Yates).
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.IntN(i+1))
	}
}
