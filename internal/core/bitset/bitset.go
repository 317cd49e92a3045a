// Package bitset is sets of small numbers, such as positions in a list.
package bitset

import "math/bits"

// Set is a set of numbers from 0 on; the zero value is the empty one. It takes an eighth of a byte for each number up to its largest.
// What looks for numbers looks at one word for 64 words that have none: of a few among ten thousand they are found in three.
type Set struct {
	words []uint64
	// some has the words that are not 0.
	some []uint64
	n    int
}

// Put adds a number.
func (p *Set) Put(i int) {
	for len(p.words) <= i/64 {
		p.words = append(p.words, 0)
	}
	p.set(i/64, p.words[i/64]|1<<(i%64))
}

// Drop takes a number out, if it is in.
func (p *Set) Drop(i int) {
	if i/64 < len(p.words) {
		p.set(i/64, p.words[i/64]&^(1<<(i%64)))
	}
}

// set changes a word.
func (p *Set) set(w int, word uint64) {
	p.n += bits.OnesCount64(word) - bits.OnesCount64(p.words[w])
	p.words[w] = word
	for len(p.some) <= w/64 {
		p.some = append(p.some, 0)
	}
	if p.some[w/64] &^= 1 << (w % 64); word != 0 {
		p.some[w/64] |= 1 << (w % 64)
	}
}

// Insert moves all numbers from i on up by one, as those of a list where something is put in at i, which is not in then.
func (p *Set) Insert(i int) {
	if i/64 >= len(p.words) {
		return
	}
	if p.words[len(p.words)-1]>>63 != 0 {
		p.words = append(p.words, 0)
	}
	for w := len(p.words) - 1; w > i/64; w-- {
		p.set(w, p.words[w]<<1|p.words[w-1]>>63)
	}
	word, below := p.words[i/64], uint64(1)<<(i%64)-1
	p.set(i/64, word&below|word&^below<<1)
}

// Remove takes i out and moves all numbers above it down by one, as those of a list from which what is at i is taken.
func (p *Set) Remove(i int) {
	for w := i / 64; w < len(p.words); w++ {
		word, below := p.words[w], uint64(0)
		if w == i/64 {
			below = uint64(1)<<(i%64) - 1
		}
		word = word&below | word>>1&^below
		if w+1 < len(p.words) {
			word |= p.words[w+1] << 63
		}
		p.set(w, word)
	}
}

// Has says whether a number is in.
func (p *Set) Has(i int) bool { return i/64 < len(p.words) && p.words[i/64]&(1<<(i%64)) != 0 }

// Next is the first number from i on that is in p, -1 if there is none.
func (p *Set) Next(i int) int {
	w := i / 64
	if w >= len(p.words) {
		return -1
	}
	word := p.words[w] & (^uint64(0) << (i % 64))
	if word == 0 {
		if w = p.next(w + 1); w < 0 {
			return -1
		}
		word = p.words[w]
	}
	return w*64 + bits.TrailingZeros64(word)
}

// next is the first word from w on that is not 0, -1 if there is none.
func (p *Set) next(w int) int {
	for s := w / 64; s < len(p.some); s++ {
		some := p.some[s]
		if s == w/64 {
			some &= ^uint64(0) << (w % 64)
		}
		if some != 0 {
			return s*64 + bits.TrailingZeros64(some)
		}
	}
	return -1
}

// Join adds what q holds.
func (p *Set) Join(q *Set) {
	for len(p.words) < len(q.words) {
		p.words = append(p.words, 0)
	}
	for w := q.next(0); w >= 0; w = q.next(w + 1) {
		p.set(w, p.words[w]|q.words[w])
	}
}

// Without takes out what q holds.
func (p *Set) Without(q *Set) {
	for w := p.next(0); w >= 0 && w < len(q.words); w = p.next(w + 1) {
		p.set(w, p.words[w]&^q.words[w])
	}
}

// Clear takes out all.
func (p *Set) Clear() {
	for w := p.next(0); w >= 0; w = p.next(w + 1) {
		p.words[w] = 0
	}
	clear(p.some)
	p.n = 0
}

// Count is how many numbers from one on and below another are in.
func (p *Set) Count(from, below int) (n int) {
	for w := p.next(from / 64); w >= 0 && 64*w < below; w = p.next(w + 1) {
		word := p.words[w]
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
func (p *Set) Last(below int) int {
	below = min(below, 64*len(p.words))
	if below <= 0 {
		return -1
	}
	w := (below - 1) / 64
	word := p.words[w] & (^uint64(0) >> (63 - (below-1)%64))
	if word == 0 {
		if w = p.last(w); w < 0 {
			return -1
		}
		word = p.words[w]
	}
	return w*64 + 63 - bits.LeadingZeros64(word)
}

// last is the last word before w that is not 0, -1 if there is none.
func (p *Set) last(w int) int {
	for s := min(w/64, len(p.some)-1); s >= 0; s-- {
		some := p.some[s]
		if s == w/64 {
			some &= 1<<(w%64) - 1
		}
		if some != 0 {
			return s*64 + 63 - bits.LeadingZeros64(some)
		}
	}
	return -1
}

// Len is how many numbers are in.
func (p *Set) Len() int { return p.n }

// Equal says whether two sets hold the same.
func (p *Set) Equal(q *Set) bool {
	if p.n != q.n {
		return false
	}
	for w := p.next(0); w >= 0; w = p.next(w + 1) {
		if w >= len(q.words) || p.words[w] != q.words[w] {
			return false
		}
	}
	return true
}
