package zone

import "math/bits"

// places is a set of positions in the order of slices.
type places []uint64

func (p *places) set(i int) {
	for len(*p) <= i/64 {
		*p = append(*p, 0)
	}
	(*p)[i/64] |= 1 << (i % 64)
}

func (p places) clear(i int) {
	if i/64 < len(p) {
		p[i/64] &^= 1 << (i % 64)
	}
}

func (p places) has(i int) bool { return i/64 < len(p) && p[i/64]&(1<<(i%64)) != 0 }

// next is the first position from i on that is in p, -1 if there is none.
func (p places) next(i int) int {
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

// add puts in what q holds.
func (p *places) add(q places) {
	for len(*p) < len(q) {
		*p = append(*p, 0)
	}
	for i, word := range q {
		(*p)[i] |= word
	}
}

// len is how many there are.
func (p places) len() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}
