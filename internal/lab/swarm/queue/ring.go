// Package queue is queues that allocate nothing in steady state: a ring, and many short lists in one arena.
package queue

// Ring is a queue in a circle. The zero value is empty.
type Ring[T any] struct {
	list     []T // its length is a power of two
	first, n int
}

// Len is how many are in it.
func (r *Ring[T]) Len() int { return r.n }

// Put adds one at the end.
func (r *Ring[T]) Put(x T) {
	r.grow()
	r.list[(r.first+r.n)&(len(r.list)-1)] = x
	r.n++
}

// PutBack adds one in front.
func (r *Ring[T]) PutBack(x T) {
	r.grow()
	r.first = (r.first - 1) & (len(r.list) - 1)
	r.list[r.first] = x
	r.n++
}

func (r *Ring[T]) grow() {
	if r.n < len(r.list) {
		return
	}
	list := make([]T, max(16, 2*len(r.list)))
	for i := range r.n {
		list[i] = r.list[(r.first+i)&(len(r.list)-1)]
	}
	r.list, r.first = list, 0
}

// First is the one that Take would give; there must be one.
func (r *Ring[T]) First() T { return r.list[r.first] }

// Take removes the first; there must be one.
func (r *Ring[T]) Take() T {
	x := r.list[r.first]
	r.first = (r.first + 1) & (len(r.list) - 1)
	r.n--
	return x
}
