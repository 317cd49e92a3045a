// Package list keeps jobs in lists: in order of submission for pages, and in no order where only all of them are asked for.
package list

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Job is what stands in a roster. Its key does not change while it does.
type Job interface {
	comparable
	ListKey() status.JobKey
}

// Roster has jobs in the order of status.JobKey. Invariant: its chunks, one behind the other, are in order, and none is empty. It
// answers "the newest before this key" and "how many stand before it" by looking at O(log n) jobs, and its length is the count that
// people see.
type Roster[J Job] struct {
	// A chunk that is full is split, at its end if it is the last: jobs mostly come in order.
	chunks [][]enrolled[J]
	n      int
}

// enrolled is a job in a roster, beside its instant of submission, so that a search looks at few jobs themselves.
type enrolled[J Job] struct {
	submitted quantity.Instant
	job       J
}

// rosterChunk is the most jobs of one chunk: a change moves half a chunk, and a count adds up n/rosterChunk numbers.
const rosterChunk = 512

func (e enrolled[J]) compare(k status.JobKey) int {
	if c := cmp.Compare(e.submitted, k.Submitted); c != 0 {
		return c
	}
	return cmp.Compare(e.job.ListKey().Name, k.Name)
}

// Insert puts a job in its place.
func (r *Roster[J]) Insert(j J) {
	e := enrolled[J]{j.ListKey().Submitted, j}
	r.n++
	if len(r.chunks) == 0 {
		r.chunks = append(r.chunks, []enrolled[J]{e})
		return
	}
	c, i := r.seek(j.ListKey())
	if c == len(r.chunks) {
		c--
		i = len(r.chunks[c])
	}
	switch full := len(r.chunks[c]) == rosterChunk; {
	case full && c == len(r.chunks)-1 && i == rosterChunk:
		r.chunks = append(r.chunks, append(make([]enrolled[J], 0, rosterChunk), e))
		return
	case full:
		half := append(make([]enrolled[J], 0, rosterChunk), r.chunks[c][rosterChunk/2:]...)
		clear(r.chunks[c][rosterChunk/2:])
		r.chunks[c] = r.chunks[c][:rosterChunk/2]
		r.chunks = slices.Insert(r.chunks, c+1, half)
		if i > rosterChunk/2 {
			c, i = c+1, i-rosterChunk/2
		}
	}
	r.chunks[c] = slices.Insert(r.chunks[c], i, e)
}

// Remove takes out a job, which must be there.
func (r *Roster[J]) Remove(j J) {
	c, i := r.seek(j.ListKey())
	r.n--
	if r.chunks[c] = slices.Delete(r.chunks[c], i, i+1); len(r.chunks[c]) == 0 {
		r.chunks = slices.Delete(r.chunks, c, c+1)
	}
}

// Len is how many there are.
func (r *Roster[J]) Len() int { return r.n }

// seek finds the first job that does not stand before k: the chunk, and the place in it; len(chunks) and 0 if there is none.
func (r *Roster[J]) seek(k status.JobKey) (c, i int) {
	c, found := slices.BinarySearchFunc(r.chunks, k, func(c []enrolled[J], k status.JobKey) int { return c[0].compare(k) })
	if found || c == 0 {
		return c, 0
	}
	c--
	if i, _ = slices.BinarySearchFunc(r.chunks[c], k, enrolled[J].compare); i == len(r.chunks[c]) {
		return c + 1, 0
	}
	return c, i
}

// rank is how many jobs stand before a place that seek found.
func (r *Roster[J]) rank(c, i int) int {
	for j := range r.chunks[:c] {
		i += len(r.chunks[j])
	}
	return i
}

// Append puts a job behind all others.
func (r *Roster[J]) Append(j J) {
	r.n++
	last := len(r.chunks) - 1
	switch {
	case last < 0:
		r.chunks, last = append(r.chunks, nil), 0
	case len(r.chunks[last]) == rosterChunk:
		r.chunks, last = append(r.chunks, make([]enrolled[J], 0, rosterChunk)), last+1
	}
	r.chunks[last] = append(r.chunks[last], enrolled[J]{j.ListKey().Submitted, j})
}

// cursor is a place in a roster, from which the jobs before it are read.
type cursor[J Job] struct {
	*Roster[J]
	c, i int
}

// last is the job before the cursor.
func (c *cursor[J]) last() enrolled[J] {
	if c.i > 0 {
		return c.chunks[c.c][c.i-1]
	}
	before := c.chunks[c.c-1]
	return before[len(before)-1]
}

// back moves to before the last job, and says whether one is left.
func (c *cursor[J]) back() bool {
	if c.i == 0 {
		c.c--
		c.i = len(c.chunks[c.c])
	}
	c.i--
	return c.c > 0 || c.i > 0
}

// Newest are the newest jobs of some rosters before a place in their order, the oldest of them first, and how many more there are; all
// where limit is 0.
func Newest[J Job](of []*Roster[J], before status.JobKey, limit int) (found []J, older int) {
	var heap []cursor[J] // the newest job on top
	newer := func(i, j int) bool {
		a, b := heap[i].last(), heap[j].last()
		return a.compare(b.job.ListKey()) > 0
	}
	down := func(i int) {
		for {
			top := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
				if newer(c, top) {
					top = c
				}
			}
			if top == i {
				return
			}
			heap[i], heap[top] = heap[top], heap[i]
			i = top
		}
	}
	for _, of := range of {
		c := cursor[J]{of, len(of.chunks), 0}
		if before != (status.JobKey{}) {
			c.c, c.i = of.seek(before)
		}
		if n := of.rank(c.c, c.i); n > 0 {
			heap, older = append(heap, c), older+n
		}
	}
	for i := len(heap) / 2; i >= 0; i-- {
		down(i)
	}
	n := older
	if limit > 0 {
		n = min(n, limit)
	}
	found = make([]J, n)
	for i := n - 1; i >= 0; i-- {
		top := &heap[0]
		found[i] = top.last().job
		if !top.back() {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(0)
	}
	return found, older - n
}
