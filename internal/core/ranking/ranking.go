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
type List[T comparable] struct {
	chunks [][]entry[T]
	// least need of each chunk, and what comes first in it: what is looked at to find the chunk lies together.
	least []time.Duration
	first []T
	// spare is room for a first chunk.
	spare []entry[T]
	// gathered is what has no place yet.
	gathered []entry[T]
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
		r.chunks, r.least, r.first = append(r.chunks, append(r.spare, e)), append(r.least, e.need), append(r.first, of)
		r.spare = nil
		return
	}
	c := r.chunk(before, e.of)
	i, _ := slices.BinarySearchFunc(r.chunks[c], e.of, func(x entry[T], s T) int { return before(x.of, s) })
	if len(r.chunks[c]) == chunkSize {
		half := append(make([]entry[T], 0, chunkSize), r.chunks[c][chunkSize/2:]...)
		clear(r.chunks[c][chunkSize/2:])
		r.chunks[c] = r.chunks[c][:chunkSize/2]
		r.chunks, r.least, r.first = slices.Insert(r.chunks, c+1, half), slices.Insert(r.least, c+1, 0), slices.Insert(r.first, c+1, half[0].of)
		r.measure(c)
		r.measure(c + 1)
		if i > chunkSize/2 {
			c, i = c+1, i-chunkSize/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
	r.least[c], r.first[c] = min(r.least[c], e.need), r.chunks[c][0].of
}

// Gather puts something in that gets its place from Settle, with all else that was gathered: until then the list is as if it were not
// in. For many things that is faster than Insert.
func (r *List[T]) Gather(need time.Duration, of T) {
	r.gathered = append(r.gathered, entry[T]{need, of})
}

// fewOf those in the list, as a divisor: so few are put in one by one, more are merged with all of the list.
const fewOf = 16

// Settle puts what was gathered into its places. What was gathered in order is not sorted again.
func (r *List[T]) Settle(before Order[T]) {
	more := r.gathered
	if len(more) <= 1+len(r.chunks)*chunkSize/fewOf {
		for _, e := range more {
			r.Insert(before, e.need, e.of)
		}
		clear(more)
		r.gathered = more[:0]
		return
	}
	r.gathered = nil
	order := func(a, b entry[T]) int { return before(a.of, b.of) }
	if !slices.IsSortedFunc(more, order) {
		slices.SortFunc(more, order)
	}
	old := r.chunks
	r.chunks, r.least, r.first, r.spare = nil, nil, nil, nil
	for _, c := range old {
		for _, e := range c {
			for len(more) > 0 && order(more[0], e) < 0 {
				r.push(more[0])
				more = more[1:]
			}
			r.push(e)
		}
	}
	for _, e := range more {
		r.push(e)
	}
}

// push puts something behind all that is in.
func (r *List[T]) push(e entry[T]) {
	last := len(r.chunks) - 1
	switch {
	case last < 0:
		r.chunks, r.least, r.first, last = append(r.chunks, nil), append(r.least, e.need), append(r.first, e.of), 0
	case len(r.chunks[last]) == chunkSize:
		r.chunks, r.least, r.first = append(r.chunks, make([]entry[T], 0, chunkSize)), append(r.least, e.need), append(r.first, e.of)
		last++
	}
	r.chunks[last], r.least[last] = append(r.chunks[last], e), min(r.least[last], e.need)
}

// Remove takes out something that is in, in the place that before gives it.
func (r *List[T]) Remove(before Order[T], s T) {
	if len(r.chunks) == 0 {
		return
	}
	c := r.chunk(before, s)
	// What lies in a chunk is seen at once; to compare it each thing would have to be looked up.
	i := slices.IndexFunc(r.chunks[c], func(x entry[T]) bool { return x.of == s })
	if i < 0 {
		return
	}
	need := r.chunks[c][i].need
	r.chunks[c] = slices.Delete(r.chunks[c], i, i+1)
	if len(r.chunks[c]) == 0 {
		r.spare = r.chunks[c]
		r.chunks, r.least, r.first = slices.Delete(r.chunks, c, c+1), slices.Delete(r.least, c, c+1), slices.Delete(r.first, c, c+1)
		return
	}
	r.first[c] = r.chunks[c][0].of
	if need == r.least[c] {
		r.measure(c)
	}
}

// chunk is the last one whose first thing does not come after s.
func (r *List[T]) chunk(before Order[T], s T) int {
	i, found := slices.BinarySearchFunc(r.first, s, before)
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

// Empty says whether nothing has a place.
func (r *List[T]) Empty() bool { return len(r.chunks) == 0 }

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

// Cursor is a place in a list; the zero value is before all. It means nothing once the list has changed.
type Cursor struct{ chunk, at int }

// Next is what comes next with a need of at most this length; ok is false if nothing does.
func (r *List[T]) Next(c *Cursor, length time.Duration) (of T, ok bool) {
	for ; c.chunk < len(r.chunks); c.chunk, c.at = c.chunk+1, 0 {
		if r.least[c.chunk] > length {
			continue
		}
		for list := r.chunks[c.chunk]; c.at < len(list); {
			e := &list[c.at]
			if c.at++; e.need <= length {
				return e.of, true
			}
		}
	}
	return of, false
}

// Behind yields in order what comes after s, which need not be in. The list must not change meanwhile.
func (r *List[T]) Behind(before Order[T], s T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		if len(r.chunks) == 0 {
			return
		}
		c := r.chunk(before, s)
		i, found := slices.BinarySearchFunc(r.chunks[c], s, func(x entry[T], s T) int { return before(x.of, s) })
		if found {
			i++
		}
		for ; c < len(r.chunks); c, i = c+1, 0 {
			for _, e := range r.chunks[c][i:] {
				if !yield(e.of) {
					return
				}
			}
		}
	}
}

// All yields everything in order. The list must not change meanwhile.
func (r *List[T]) All() func(yield func(T) bool) { return r.Within(math.MaxInt64) }
