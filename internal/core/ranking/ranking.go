// Package ranking keeps things in an order, each with a need, and finds the first whose need is met. It does not know what they are.
package ranking

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// List is things in an order, such as waiting jobs as a policy asks them, each with a need, such as the shortest window that it
// could use. It answers "who is the first that can use a window of this length" by looking at one number for each chunk of up to
// chunkSize things and then into one chunk. The zero value is empty.
type List[T any] struct {
	chunks [][]entry[T]
	// least need of each chunk, and its first in order: what finding the chunk reads is together in memory.
	least []time.Duration
	first []entry[T]
	// spare is room for a first chunk.
	spare []entry[T]
	// gathered is what has no place yet.
	gathered []entry[T]
}

// entry is a thing in the list, with its key: of a million things each that is looked up is a miss of the cache.
type entry[T any] struct {
	need time.Duration
	key  Key
	of   T
}

// chunkSize balances the search, which looks at n/chunkSize + chunkSize numbers, for 10^4 to 10^5 things.
const chunkSize = 256

// Key is the greater part of an order in two numbers, the first of which counts more.
type Key [2]int64

// Order is how things are ranked. It must be the same, keys included, for all that is in one list while it is there.
type Order[T any] struct {
	// Compare is negative if a comes before b. It is total.
	Compare func(a, b T) int
	// Key of a thing, which is kept beside it: what has a lesser key comes before what has a greater one, and only things with equal keys
	// are compared. Without it all keys are equal.
	Key func(T) Key
}

// entry of a thing in this order.
func (o *Order[T]) entry(need time.Duration, of T) entry[T] {
	e := entry[T]{need: need, of: of}
	if o.Key != nil {
		e.key = o.Key(of)
	}
	return e
}

func (o *Order[T]) compare(a, b *entry[T]) int {
	if a.key != b.key {
		return cmp.Or(cmp.Compare(a.key[0], b.key[0]), cmp.Compare(a.key[1], b.key[1]))
	}
	return o.Compare(a.of, b.of)
}

// place of an entry among others: that of the first that does not come before it, and whether it is there.
func (o *Order[T]) place(list []entry[T], e *entry[T]) (at int, found bool) {
	low, high := 0, len(list)
	for low < high {
		if middle := int(uint(low+high) >> 1); o.compare(&list[middle], e) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(list) && o.compare(&list[low], e) == 0
}

// Insert puts something into its place.
func (r *List[T]) Insert(by Order[T], need time.Duration, of T) { r.insert(&by, by.entry(need, of)) }

func (r *List[T]) insert(by *Order[T], e entry[T]) {
	if len(r.chunks) == 0 {
		r.chunks, r.least, r.first = append(r.chunks, append(r.spare, e)), append(r.least, e.need), append(r.first, e)
		r.spare = nil
		return
	}
	c := r.chunk(by, &e)
	i, _ := by.place(r.chunks[c], &e)
	if len(r.chunks[c]) == chunkSize {
		half := append(make([]entry[T], 0, chunkSize), r.chunks[c][chunkSize/2:]...)
		clear(r.chunks[c][chunkSize/2:])
		r.chunks[c] = r.chunks[c][:chunkSize/2]
		r.chunks, r.least, r.first = slices.Insert(r.chunks, c+1, half), slices.Insert(r.least, c+1, 0),
			slices.Insert(r.first, c+1, half[0])
		r.measure(c)
		r.measure(c + 1)
		if i > chunkSize/2 {
			c, i = c+1, i-chunkSize/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
	r.least[c], r.first[c] = min(r.least[c], e.need), r.chunks[c][0]
}

// Gather puts something in that gets its place from Settle, with all else that was gathered: until then the list is as if it were not
// in. For many things that is faster than Insert.
func (r *List[T]) Gather(by Order[T], need time.Duration, of T) {
	r.gathered = append(r.gathered, by.entry(need, of))
}

// fewOf is a divisor of the list: up to this share is inserted one by one, more is merged with the whole list.
const fewOf = 16

// Settle puts what was gathered into its places. What was gathered in order is not sorted again.
func (r *List[T]) Settle(by Order[T]) {
	more := r.gathered
	if len(more) <= 1+len(r.chunks)*chunkSize/fewOf {
		for i := range more {
			r.insert(&by, more[i])
		}
		clear(more)
		r.gathered = more[:0]
		return
	}
	r.gathered = nil
	order := func(a, b entry[T]) int { return by.compare(&a, &b) }
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
		r.chunks, r.least, r.first, last = append(r.chunks, nil), append(r.least, e.need), append(r.first, e), 0
	case len(r.chunks[last]) == chunkSize:
		r.chunks, r.least, r.first = append(r.chunks, make([]entry[T], 0, chunkSize)), append(r.least, e.need), append(r.first, e)
		last++
	}
	r.chunks[last], r.least[last] = append(r.chunks[last], e), min(r.least[last], e.need)
}

// Remove takes out something that is in, in the place that the order gives it.
func (r *List[T]) Remove(by Order[T], s T) {
	if len(r.chunks) == 0 {
		return
	}
	e := by.entry(0, s)
	c := r.chunk(&by, &e)
	i, found := by.place(r.chunks[c], &e)
	if !found {
		return
	}
	need := r.chunks[c][i].need
	r.chunks[c] = slices.Delete(r.chunks[c], i, i+1)
	if len(r.chunks[c]) == 0 {
		r.spare = r.chunks[c]
		r.chunks, r.least, r.first = slices.Delete(r.chunks, c, c+1), slices.Delete(r.least, c, c+1), slices.Delete(r.first, c, c+1)
		return
	}
	r.first[c] = r.chunks[c][0]
	if need == r.least[c] {
		r.measure(c)
	}
}

// chunk is the last one whose first thing does not come after e.
func (r *List[T]) chunk(by *Order[T], e *entry[T]) int {
	i, found := by.place(r.first, e)
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
func (r *List[T]) Behind(by Order[T], s T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		if len(r.chunks) == 0 {
			return
		}
		e := by.entry(0, s)
		c := r.chunk(&by, &e)
		i, found := by.place(r.chunks[c], &e)
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
