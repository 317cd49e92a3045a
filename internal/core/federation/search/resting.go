package search

import (
	"cmp"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
)

// resting are the tickets that wait in a zone for room, by class in the order in which their owners give up. Who never gives up comes
// last, by age.
type resting [flow.MaxClasses]queue

// put a ticket that rests from now on.
func (r *resting) put(x *guest) {
	if x.rest == 0 {
		r[x.Class].push(x)
	}
}

// drop one that does not rest any more, if it did.
func (r *resting) drop(x *guest) {
	if x.rest != 0 {
		r[x.Class].remove(x)
	}
}

// any reports whether a ticket rests.
func (r *resting) any() bool {
	for c := range r {
		if len(r[c]) > 0 {
			return true
		}
	}
	return false
}

// first is who gives up first of those whom a fragment of a class serves, nil if nobody rests.
func (r *resting) first(fragment flow.Class) (best *guest) {
	for c := range fragment + 1 {
		if len(r[c]) > 0 && (best == nil || givesUp(r[c][0], best) < 0) {
			best = r[c][0]
		}
	}
	return best
}

// givesUp compares when two tickets give up.
func givesUp(a, b *guest) int {
	return cmp.Or(cmp.Compare(a.until(), b.until()), cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Home, b.Home))
}

// until is when its owner gives it up.
func (x *guest) until() quantity.Instant {
	if x.Deadline == 0 {
		return quantity.Never
	}
	return x.Deadline
}

// queue is one class: a binary heap. Each guest knows its place in it, from 1.
type queue []*guest

func (q *queue) push(x *guest) {
	*q = append(*q, x)
	x.rest = len(*q)
	q.up(x)
}

func (q *queue) remove(x *guest) {
	last := len(*q) - 1
	moved := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	if moved != x {
		q.put(moved, x.rest-1)
		q.up(moved)
		q.down(moved)
	}
	x.rest = 0
}

func (q *queue) put(x *guest, i int) { (*q)[i], x.rest = x, i+1 }

func (q *queue) up(x *guest) {
	for i := x.rest - 1; i > 0 && givesUp(x, (*q)[(i-1)/2]) < 0; i = x.rest - 1 {
		q.swap(x, (i-1)/2)
	}
}

func (q *queue) down(x *guest) {
	for {
		i := x.rest - 1
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(*q); k++ {
			if givesUp((*q)[k], (*q)[least]) < 0 {
				least = k
			}
		}
		if least == i {
			return
		}
		q.swap(x, least)
	}
}

// swap puts a guest where another one is.
func (q *queue) swap(x *guest, i int) {
	other, was := (*q)[i], x.rest-1
	q.put(x, i)
	q.put(other, was)
}
