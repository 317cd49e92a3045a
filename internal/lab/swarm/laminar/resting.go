package laminar

import (
	"cmp"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// resting are tickets that wait in a zone for room, by class in the order in which their owners give up. One that has gone on since is
// left where it lies until it comes first.
type resting [swarm.MaxClasses][]rest

type rest struct {
	deadline quantity.Instant
	id       uint64
	move     int32
}

func (r *rest) compare(o *rest) int {
	return cmp.Or(cmp.Compare(r.deadline, o.deadline), cmp.Compare(r.id, o.id))
}

// put a ticket that rests from now on.
func (r *resting) put(e *ticket) {
	h := append(r[e.search.Class], rest{e.search.Deadline, e.id, e.move})
	for i := len(h) - 1; i > 0; {
		above := (i - 1) / 2
		if h[above].compare(&h[i]) <= 0 {
			break
		}
		h[i], h[above] = h[above], h[i]
		i = above
	}
	r[e.search.Class] = h
}

// first of a class that still rests, nil if nobody does.
func (r *resting) first(p *pool, c flow.Class) *ticket {
	for len(r[c]) > 0 {
		top := &r[c][0]
		if e := p.get(top.id); e != nil && e.move == top.move && e.search.Phase == flow.Searching {
			return e
		}
		r.drop(c)
	}
	return nil
}

// any says whether somebody rests.
func (r *resting) any(p *pool) bool {
	for c := range r {
		if r.first(p, flow.Class(c)) != nil {
			return true
		}
	}
	return false
}

// take is who gives up first of those whom a fragment of a class serves, nil if nobody rests.
func (r *resting) take(p *pool, fragment flow.Class) (best *ticket) {
	for c := range fragment + 1 {
		if e := r.first(p, c); e != nil && (best == nil || r[c][0].compare(&r[best.search.Class][0]) < 0) {
			best = e
		}
	}
	if best != nil {
		r.drop(best.search.Class)
	}
	return best
}

// drop the first of a class.
func (r *resting) drop(c flow.Class) {
	h := r[c]
	last := len(h) - 1
	h[0], h = h[last], h[:last]
	for i := 0; ; {
		first := i
		for below := 2*i + 1; below <= 2*i+2 && below < last; below++ {
			if h[below].compare(&h[first]) < 0 {
				first = below
			}
		}
		if first == i {
			break
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
	r[c] = h
}
