// Package agenda is a heap of what is to happen in a simulation, and when. It must not know what that is.
package agenda

import "sluice.dev/sluice/internal/core/quantity"

// Heap holds what is to happen, the earliest first and at one instant in the order in which it was put. It is a 4-ary heap
// of values: half as deep as a binary one, and nothing is boxed. What is large is kept elsewhere and named by a number.
type Heap[T any] struct {
	entries []entry[T]
	number  uint64
}

type entry[T any] struct {
	at     quantity.Instant
	number uint64 // ties end on it
	what   T
}

func (e *entry[T]) before(f *entry[T]) bool {
	return e.at < f.at || e.at == f.at && e.number < f.number
}

// Put adds what is to happen at an instant.
func (h *Heap[T]) Put(at quantity.Instant, what T) {
	h.number++
	e := entry[T]{at: at, number: h.number, what: what}
	h.entries = append(h.entries, e)
	i := len(h.entries) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h.entries[up]) {
			break
		}
		h.entries[i] = h.entries[up]
		i = up
	}
	h.entries[i] = e
}

// Len is how much is to happen.
func (h *Heap[T]) Len() int { return len(h.entries) }

// Next is when the first thing happens, Never if there is none.
func (h *Heap[T]) Next() quantity.Instant {
	if len(h.entries) == 0 {
		return quantity.Never
	}
	return h.entries[0].at
}

// Take removes the first thing; there must be one.
func (h *Heap[T]) Take() T {
	first := h.entries[0].what
	n := len(h.entries) - 1
	e := h.entries[n]
	h.entries = h.entries[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if h.entries[c].before(&h.entries[least]) {
				least = c
			}
		}
		if !h.entries[least].before(&e) {
			break
		}
		h.entries[i] = h.entries[least]
		i = least
	}
	h.entries[i] = e
	return first
}
