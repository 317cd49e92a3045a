// Package bitset is sets of small numbers, such as positions in a list.
package bitset

import "math/bits"

// Set is a set of numbers from 0 on; nil is the empty one. It takes an eighth of a byte for each number up to its largest.
type Set []uint64

// Put adds a number.
func (p *Set) Put(i int) {
	for len(*p) <= i/64 {
		*p = append(*p, 0)
	}
	(*p)[i/64] |= 1 << (i % 64)
}

// Drop takes a number out, if it is in.
func (p Set) Drop(i int) {
	if i/64 < len(p) {
		p[i/64] &^= 1 << (i % 64)
	}
}

// Insert moves all numbers from i on up by one, as those of a list where something is put in at i, which is not in then.
func (p *Set) Insert(i int) {
	if i/64 >= len(*p) {
		return
	}
	if (*p)[len(*p)-1]>>63 != 0 {
		*p = append(*p, 0)
	}
	for w := len(*p) - 1; w > i/64; w-- {
		(*p)[w] = (*p)[w]<<1 | (*p)[w-1]>>63
	}
	word, below := &(*p)[i/64], uint64(1)<<(i%64)-1
	*word = *word&below | *word&^below<<1
}

// Has says whether a number is in.
func (p Set) Has(i int) bool { return i/64 < len(p) && p[i/64]&(1<<(i%64)) != 0 }

// Next is the first number from i on that is in p, -1 if there is none.
func (p Set) Next(i int) int {
	for w := i / 64; w < len(p); w++ {
		word := p[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// Join adds what q holds.
func (p *Set) Join(q Set) {
	for len(*p) < len(q) {
		*p = append(*p, 0)
	}
	for i, word := range q {
		(*p)[i] |= word
	}
}

// Without takes out what q holds.
func (p Set) Without(q Set) {
	for i := range min(len(p), len(q)) {
		p[i] &^= q[i]
	}
}

// Count is how many numbers from one on and below another are in.
func (p Set) Count(from, below int) (n int) {
	below = min(below, 64*len(p))
	for w := from / 64; 64*w < below; w++ {
		word := p[w]
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if end := below - 64*w; end < 64 {
			word &= 1<<end - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// Last is the largest number below another that is in, -1 if there is none.
func (p Set) Last(below int) int {
	below = min(below, 64*len(p))
	for w := (below - 1) / 64; below > 0 && w >= 0; w-- {
		word := p[w]
		if end := below - 64*w; end < 64 {
			word &= 1<<end - 1
		}
		if word != 0 {
			return w*64 + 63 - bits.LeadingZeros64(word)
		}
	}
	return -1
}

// Len is how many numbers are in.
func (p Set) Len() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}
