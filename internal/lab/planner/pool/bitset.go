package pool

import "math/bits"

// Set is a set of small numbers that finds its least member in a step per level: a bit of a level says that the word
// below it is not empty. Three levels hold 262,144 numbers.
type Set struct{ levels [][]uint64 }

// NewSet is an empty set of numbers below n.
func NewSet(n int) Set {
	var s Set
	for words := n; ; {
		words = (words + 63) / 64
		s.levels = append(s.levels, make([]uint64, max(words, 1)))
		if words <= 1 {
			return s
		}
	}
}

// Add puts i in.
func (s *Set) Add(i int32) {
	for _, level := range s.levels {
		w := &level[i>>6]
		had := *w
		*w |= 1 << (i & 63)
		if had != 0 {
			return
		}
		i >>= 6
	}
}

// Remove takes i out.
func (s *Set) Remove(i int32) {
	for _, level := range s.levels {
		w := &level[i>>6]
		*w &^= 1 << (i & 63)
		if *w != 0 {
			return
		}
		i >>= 6
	}
}

// setWord replaces the i-th 64 members at once.
func (s *Set) setWord(i int32, word uint64) {
	had := s.levels[0][i]
	s.levels[0][i] = word
	if (had == 0) == (word == 0) || len(s.levels) == 1 {
		return
	}
	up := Set{s.levels[1:]}
	if word == 0 {
		up.Remove(i)
	} else {
		up.Add(i)
	}
}

// Next is the least member that is at least from, or -1.
func (s *Set) Next(from int32) int32 {
	// Up, until a level has something at or after from; then down along the first bits.
	for l, i := 0, from; l < len(s.levels) && int(i>>6) < len(s.levels[l]); l++ {
		if w := s.levels[l][i>>6] &^ (1<<(i&63) - 1); w != 0 {
			i = i&^63 | int32(bits.TrailingZeros64(w))
			for l--; l >= 0; l-- {
				i = i<<6 | int32(bits.TrailingZeros64(s.levels[l][i]))
			}
			return i
		}
		i = i>>6 + 1
	}
	return -1
}

// copyFrom makes s equal to o, which has the same size.
func (s *Set) copyFrom(o *Set) {
	for l := range s.levels {
		copy(s.levels[l], o.levels[l])
	}
}

// none is what a set without a further member says, and what ends a chain.
const none = -1
