// Package easy is EASY backfilling (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; "aggressive" in Mu'alem and
// Feitelson, TPDS 2001): tasks start in the order of arrival, the first that does not fit gets a reservation, and those
// behind it may start out of order if that does not delay the reservation.
//
// With several classes of devices: a task starts on the class with room now where it ends first. The head that has room
// nowhere is reserved the class and time at which it is planned to end first (then: to start first, then the lowest class).
// A task behind it may start on another class at once; on the reserved class it must be planned to end by the reserved
// time, or leave enough devices for the head at that time. Among the classes where it may start it takes the one where it
// ends first. A running task past its planned end is planned to end in the next nanosecond. Tasks that nobody knows the run
// of end never: where the head has to wait for one there is no time to be kept, and everything that fits may start.
//
// What is planned now follows from an index and not from a pass over the queue: between ends, tasks that wait only become
// less able to start, so an arrival tests itself alone; after an end, the index names the first that may start. The plain
// pass decides the same and serves clusters in which counting devices does not answer whether a task fits.
package easy

import (
	"math"
	"math/bits"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/head"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Kind is the kind.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "easy",
		Summary: "EASY backfilling: one reservation, for the first that does not fit (Lifka, JSSPP 1995)",
		New:     newEasy,
	}
}

// easy is the planner. Invariant after Plan: no waiting task may start, and if one waits and all tasks are loose, head is
// the reservation of the first.
type easy struct {
	book    *book.Book
	line    queue.Line
	index   queue.Index
	running head.Running
	keeper  *head.Keeper // of the plain pass
	head    head.Reservation
	// dirty: a waiting task may be able to start that was not at the last plan; tested is the last arrival that had its turn.
	dirty  bool
	tested int64
	places []queue.Place
}

func newEasy(o planner.Options) (planner.Planner, error) {
	b, err := book.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	p := &easy{book: b}
	if p.keeper, err = head.New(o.Cluster, b, &p.running); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *easy) Arrive(now quantity.Instant, t planner.Task) {
	if e := p.book.Arrive(now, t); e != nil {
		p.line.Push(queue.Place{ID: t.ID, Seq: e.Seq})
		p.index.Put(e)
		// The first of a queue has no reservation yet; and one that must be counted in more than devices changes the way.
		p.dirty = p.dirty || p.line.Len() == 1 || !e.Loose
	}
}

func (p *easy) Leave(_ quantity.Instant, id planner.ID) {
	switch e := p.book.Leave(id); e.State {
	case book.Waiting:
		// Behind the head it changes nothing, unless the way changes with it.
		p.dirty = p.dirty || p.line.First().Seq == e.Seq || !e.Loose
		p.unqueue(&e)
	case book.Running:
		p.dirty = true
		p.running.Ended(&e)
	case book.Absent, book.Refused:
	}
}

func (p *easy) unqueue(e *book.Entry) {
	p.line.Remove(e.Seq)
	p.index.Remove(e)
}

// start starts a task on a class where it fits.
func (p *easy) start(now quantity.Instant, e *book.Entry, class int, out *planner.Out) {
	p.book.Start(now, e, class, out)
	p.unqueue(e)
	p.running.Began(e)
}

func (p *easy) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	switch {
	case p.line.Len() == 0:
	case p.book.Bound > 0:
		p.planPlain(now, out)
	case p.dirty || p.moved(now):
		p.planAll(now, out)
	default:
		p.places = p.line.From(p.tested, p.places[:0])
		for _, q := range p.places {
			p.backfill(now, p.book.At(q.ID), out)
		}
	}
	p.dirty, p.tested = false, p.book.Last()
}

// heads starts tasks in order until one does not fit, and returns that.
func (p *easy) heads(now quantity.Instant, out *planner.Out) *book.Entry {
	for p.line.Len() > 0 {
		e := p.book.At(p.line.First().ID)
		class, ok := p.book.Fastest(e)
		if !ok {
			return e
		}
		p.start(now, e, class, out)
	}
	return nil
}

// planAll looks at the whole queue through the index.
func (p *easy) planAll(now quantity.Instant, out *planner.Out) {
	e := p.heads(now, out)
	if e == nil {
		return
	}
	p.head = p.reserve(now, e)
	for {
		next, ok := p.first(now)
		if !ok {
			return
		}
		if !p.backfill(now, p.book.At(next.ID), out) {
			invariant.Check(false, "easy: the index names task %d as the first that may start, and it may not", next.ID)
		}
	}
}

// moved says whether time alone made more possible: running tasks past their plan shift the reservation, to another class
// or to an instant at which more is free. It brings the reservation up to date.
func (p *easy) moved(now quantity.Instant) bool {
	if p.head.At > now {
		return false
	}
	was := p.head
	p.head = p.reserve(now, p.book.At(p.line.First().ID))
	return p.head.Class != was.Class || p.head.Spare > was.Spare
}

// reserve finds class and time for a task that fits nowhere now, if all tasks are loose.
func (p *easy) reserve(now quantity.Instant, e *book.Entry) head.Reservation {
	best := head.None()
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		at, free := p.running[c].Shadow(now, p.book.Pool.Free(c), e.Task.Devices)
		best = best.Or(head.Reservation{Class: c, At: at, End: head.End(at, e, c), Spare: free - e.Task.Devices})
	}
	return best
}

// first is the first task in the queue that may start.
func (p *easy) first(now quantity.Instant) (best queue.Place, ok bool) {
	for c := range p.book.Pool.Classes() {
		free := p.book.Pool.Free(c)
		if free == 0 {
			continue
		}
		spare, limit := int32(math.MaxInt32), int64(queue.Any)
		if c == p.head.Class {
			spare, limit = p.head.Spare, p.head.Limit(now)
		}
		if q, found := p.index.First(c, free, spare, limit); found && (!ok || q.Seq < best.Seq) {
			best, ok = q, true
		}
	}
	return best, ok
}

// backfill starts a task behind the head on the class where it ends first, if it may start.
func (p *easy) backfill(now quantity.Instant, e *book.Entry, out *planner.Out) bool {
	class, best := -1, int64(0)
	n := e.Task.Devices
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		run := e.Run(c)
		if n > p.book.Pool.Free(c) || class >= 0 && run >= best {
			continue
		}
		if c != p.head.Class || n <= p.head.Spare || run <= p.head.Limit(now) {
			class, best = c, run
		}
	}
	if class < 0 {
		return false
	}
	if class == p.head.Class && best > p.head.Limit(now) {
		p.head.Spare -= n
	}
	p.start(now, e, class, out)
	return true
}

// Reservations has one, the head's.
func (p *easy) Reservations(now quantity.Instant, out []planner.Reservation) []planner.Reservation {
	if p.line.Len() == 0 {
		return out
	}
	e := p.book.At(p.line.First().ID)
	if _, fits := p.book.Fastest(e); fits {
		return out // it starts with the next plan
	}
	var r head.Reservation
	if p.book.Bound > 0 {
		r = p.keeper.Reserve(now, e)
	} else {
		r = p.reserve(now, e)
	}
	return append(out, planner.Reservation{Task: e.Task.ID, Class: uint8(r.Class), Start: r.At, End: r.End})
}

// planPlain looks at every task of the queue. The reservation is a class and a time at which, if all that runs then is
// gone, the head fits; a task behind it that runs longer may start on devices that leave that so. Here too an arrival
// tests itself alone until something ends or the reservation moves.
func (p *easy) planPlain(now quantity.Instant, out *planner.Out) {
	from := p.tested
	if p.dirty || p.head.At <= now {
		e := p.heads(now, out)
		if e == nil {
			return
		}
		from = e.Seq
		p.head = p.keeper.Reserve(now, e)
	}
	p.keeper.Begin()
	first := p.book.At(p.line.First().ID)
	p.places = p.line.From(from, p.places[:0])
	for _, q := range p.places {
		e := p.book.At(q.ID)
		if class, ok := p.keeper.Overtakes(now, &p.head, first, e); ok {
			p.start(now, e, class, out)
		}
	}
}
