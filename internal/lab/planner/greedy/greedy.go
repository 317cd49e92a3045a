// Package greedy is first-come with skipping: whatever fits now starts, in the order of arrival, and nothing is kept for
// those that do not. What a kind adds is which class a task prefers among those with room.
package greedy

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Planner is the machine. Make it with New.
//
// Between ends, tasks that wait only become less able to start, so an arrival tests itself alone; after an end, only the
// classes with new room are searched.
type Planner struct {
	book  *book.Book
	line  queue.Line
	index queue.Index
	rank  func(e *book.Entry, class int) int64
	// freed is the set of classes with more room than at the last plan; tested is the last arrival that had its turn.
	freed  uint32
	tested int64
	places []queue.Place
}

// New is a planner that prefers the class of least rank, the lowest of equals.
func New(o planner.Options, rank func(e *book.Entry, class int) int64) (planner.Planner, error) {
	b, err := book.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	return &Planner{book: b, rank: rank}, nil
}

// Arrive is the contract's.
func (p *Planner) Arrive(now quantity.Instant, t planner.Task) {
	if e := p.book.Arrive(now, t); e != nil {
		p.line.Push(queue.Place{ID: t.ID, Seq: e.Seq})
		p.index.Put(e)
	}
}

// Leave is the contract's.
func (p *Planner) Leave(_ quantity.Instant, id planner.ID) {
	switch e := p.book.Leave(id); e.State {
	case book.Waiting:
		p.unqueue(&e)
	case book.Running:
		p.freed |= 1 << e.Class
		if p.book.Bound > 0 || !e.Loose {
			p.freed = 1<<planner.MaxClasses - 1 // room of its host is room for every class
		}
	case book.Absent, book.Refused:
	}
}

func (p *Planner) unqueue(e *book.Entry) {
	p.line.Remove(e.Seq)
	p.index.Remove(e)
}

// Plan is the contract's.
func (p *Planner) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	p.places = p.line.From(p.tested, p.places[:0]) // the new ones
	switch {
	case p.freed == 0:
		p.each(now, out)
	case p.book.Bound > 0:
		p.places = p.line.From(0, p.places[:0])
		p.each(now, out)
	default:
		for _, q := range p.places {
			p.freed |= p.book.At(q.ID).Task.Classes
		}
		for {
			next, ok := p.first()
			if !ok {
				break
			}
			p.try(now, p.book.At(next.ID), out)
		}
	}
	p.freed, p.tested = 0, p.book.Last()
}

// each gives the tasks of places their turn.
func (p *Planner) each(now quantity.Instant, out *planner.Out) {
	for _, q := range p.places {
		p.try(now, p.book.At(q.ID), out)
	}
}

// first is the first queued task that fits on a class, if all tasks are Pool.Loose.
func (p *Planner) first() (best queue.Place, ok bool) {
	for m := p.freed; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		if c >= p.book.Pool.Classes() {
			break
		}
		free := p.book.Pool.Free(c)
		if q, found := p.index.First(c, free, free, queue.Any); found && (!ok || q.Seq < best.Seq) {
			best, ok = q, true
		}
	}
	return best, ok
}

// try starts a task if there is room.
func (p *Planner) try(now quantity.Instant, e *book.Entry, out *planner.Out) {
	best, class := int64(0), -1
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		if r := p.rank(e, c); (class < 0 || r < best) && p.book.Pool.Fits(&e.Task, c) {
			best, class = r, c
		}
	}
	if class >= 0 {
		p.book.Start(now, e, class, out)
		p.unqueue(e)
	}
}

// Reservations is the contract's: nothing is kept.
func (p *Planner) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}
