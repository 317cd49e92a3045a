package watch

import "sync/atomic"

// words are shared memory. Every access is of one whole word and atomic: the other side is another process, in the middle of anything.
type words struct {
	at []uint64
	// before is called before every store, where a test wants to stop a writer; else it is nil.
	before func()
}

func (w words) load(i int) uint64 { return atomic.LoadUint64(&w.at[i]) }

func (w words) store(i int, v uint64) {
	if w.before != nil {
		w.before()
	}
	atomic.StoreUint64(&w.at[i], v)
}

func (w words) len() int { return len(w.at) }

// part is some of them, from one on and before another.
func (w words) part(from, to int) words { return words{w.at[from:to:to], w.before} }

// write copies words in, read out.
func (w words) write(at int, from []uint64) {
	for i, v := range from {
		w.store(at+i, v)
	}
}

func (w words) read(at int, to []uint64) {
	for i := range to {
		to[i] = w.load(at + i)
	}
}

// sum of words and of the number under which they were written, so that old words under a new number are not taken for new ones. Each step
// can be taken back, so that no single word can change without it.
func sum(number uint64, of []uint64) uint64 {
	h := number*prime ^ uint64(len(of))
	for _, v := range of {
		h = (h ^ v) * prime
		h ^= h >> 32
	}
	return h
}

const prime = 0x9e3779b97f4a7c15 // odd, and its bits are spread
