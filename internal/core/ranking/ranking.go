// Package ranking keeps things in an order, each with a need, and finds the first whose need is met. It knows nothing of what is
// ranked.
package ranking

import (
	"math"
	"slices"
	"time"
)

// List is things in an order, such as waiting jobs as a policy asks them, each with a need, such as the shortest window that it
// could use. It answers "who is the first that can use a window of this length" by looking at one number for each chunk of up to
// chunkSize things and then into one chunk. The zero value is empty.
type List[T any] struct {
	chunks [][]entry[T]
	// least need of each chunk.
	least []time.Duration
	// spare is room for a first chunk.
	spare []entry[T]
}

type entry[T any] struct {
	need time.Duration
	of   T
}

// chunkSize balances the search, which looks at n/chunkSize + chunkSize numbers, for 10^4 to 10^5 things.
const chunkSize = 256

// Order is negative if a comes before b. It must be the same, and total, for all that is in one list while it is there.
type Order[T any] func(a, b T) int

// Insert puts something into its place.
func (r *List[T]) Insert(before Order[T], need time.Duration, of T) {
	e := entry[T]{need, of}
	if len(r.chunks) == 0 {
		r.chunks, r.least = append(r.chunks, append(r.spare, e)), append(r.least, e.need)
		r.spare = nil
		return
	}
	c := r.chunk(before, e.of)
	i, _ := slices.BinarySearchFunc(r.chunks[c], e.of, func(x entry[T], s T) int { return before(x.of, s) })
	if len(r.chunks[c]) == chunkSize {
		half := append(make([]entry[T], 0, chunkSize), r.chunks[c][chunkSize/2:]...)
		clear(r.chunks[c][chunkSize/2:])
		r.chunks[c] = r.chunks[c][:chunkSize/2]
		r.chunks, r.least = slices.Insert(r.chunks, c+1, half), slices.Insert(r.least, c+1, 0)
		r.measure(c)
		r.measure(c + 1)
		if i > chunkSize/2 {
			c, i = c+1, i-chunkSize/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
	r.least[c] = min(r.least[c], e.need)
}

// Remove takes out something that is in, in the place that before gives it.
func (r *List[T]) Remove(before Order[T], s T) {
	c := r.chunk(before, s)
	i, found := slices.BinarySearchFunc(r.chunks[c], s, func(x entry[T], s T) int { return before(x.of, s) })
	if !found {
		return
	}
	need := r.chunks[c][i].need
	r.chunks[c] = slices.Delete(r.chunks[c], i, i+1)
	switch {
	case len(r.chunks[c]) == 0:
		r.spare = r.chunks[c]
		r.chunks, r.least = slices.Delete(r.chunks, c, c+1), slices.Delete(r.least, c, c+1)
	case need == r.least[c]:
		r.measure(c)
	}
}

// chunk is the last one whose first thing does not come after s.
func (r *List[T]) chunk(before Order[T], s T) int {
	i, found := slices.BinarySearchFunc(r.chunks, s, func(c []entry[T], s T) int { return before(c[0].of, s) })
	if found {
		return i
	}
	return max(0, i-1)
}

func (r *List[T]) measure(c int) {
	least := time.Duration(math.MaxInt64)
	for i := range r.chunks[c] {
		least = min(least, r.chunks[c][i].need)
	}
	r.least[c] = least
}

// Ahead counts the things in front for which is holds, and all. It must hold for a first part of the list and for nothing behind it.
func (r *List[T]) Ahead(is func(T) bool) (ahead, all int) {
	search := func(list []entry[T]) int {
		i, _ := slices.BinarySearchFunc(list, is, func(e entry[T], is func(T) bool) int {
			if is(e.of) {
				return -1
			}
			return 1
		})
		return i
	}
	last, _ := slices.BinarySearchFunc(r.chunks, is, func(c []entry[T], is func(T) bool) int {
		if is(c[0].of) {
			return -1
		}
		return 1
	})
	for c := range r.chunks {
		switch all += len(r.chunks[c]); {
		case c == last-1:
			ahead += search(r.chunks[c])
		case c < last:
			ahead += len(r.chunks[c])
		}
	}
	return ahead, all
}

// First is the first with a need of at most this length; ok is false if there is none.
func (r *List[T]) First(length time.Duration) (of T, ok bool) {
	for of := range r.Within(length) {
		return of, true
	}
	return of, false
}

// Within yields those with a need of at most this length, in order. The list must not change meanwhile.
func (r *List[T]) Within(length time.Duration) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for c, least := range r.least {
			if least > length {
				continue
			}
			for i := range r.chunks[c] {
				if e := &r.chunks[c][i]; e.need <= length && !yield(e.of) {
					return
				}
			}
		}
	}
}

// All yields everything in order. The list must not change meanwhile.
func (r *List[T]) All() func(yield func(T) bool) { return r.Within(math.MaxInt64) }
