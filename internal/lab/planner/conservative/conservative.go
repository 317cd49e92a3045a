// Package conservative is conservative backfilling (Mu'alem and Feitelson, "Utilization, predictability, workloads, and user
// runtime estimates in scheduling the IBM SP2 with backfilling", TPDS 2001): every waiting task has a reservation, and
// nobody may start so that an earlier one is delayed.
//
// A task is reserved, on arrival, the class and time at which it is planned to end first (then: to start first, then the
// lowest class), given all that runs and is reserved. When something ends or leaves, the queue is gone through once in
// order, and each task may move to where it is planned to end sooner, all others staying where they are. So while nobody
// runs past its plan, no reservation ever moves to a later end. When somebody does, it is planned to end in the next
// nanosecond, and the whole queue is planned anew in order: reservations then slip, as they must.
//
// Where counting devices answers whether a task fits, the plan is a number of free devices over time for each class;
// otherwise it is kept device by device, which is slower. A pass costs the length of the queue times that of the plan:
// there is no index here as there is for EASY.
package conservative

import (
	"math"
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ends"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Kind is the kind.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "conservative",
		Summary: "conservative backfilling: everybody who waits has a reservation (Mu'alem and Feitelson, TPDS 2001)",
		New:     newConservative,
	}
}

// conservative is the planner. Invariant after Plan: every waiting task has a slot in the plan that begins after now, and
// every running one has one that ends after now.
type conservative struct {
	book    *book.Book
	line    queue.Line
	running [planner.MaxClasses]ends.List
	slots   []slot // by id
	counts  counts
	lanes   lanes
	plan    plan
	// freed: time was given back since the last plan; tested is the last arrival that has a slot; planned the instant of
	// the last plan, and due the first start that is reserved.
	freed        bool
	tested       int64
	planned, due quantity.Instant
	places       []queue.Place
	best, trial  slot
	all          []ends.Task
	left         book.Entry // who left last, where a pointer to it does not escape
}

func newConservative(o planner.Options) (planner.Planner, error) {
	b, err := book.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	p := &conservative{book: b, planned: math.MinInt64, due: quantity.Never}
	p.counts = newCounts(b.Pool)
	p.lanes = newLanes(o.Cluster)
	p.plan = &p.counts
	return p, nil
}

func (p *conservative) Arrive(now quantity.Instant, t planner.Task) {
	for int(t.ID) >= len(p.slots) {
		p.slots = append(p.slots, slot{})
	}
	if e := p.book.Arrive(now, t); e != nil {
		p.line.Push(queue.Place{ID: t.ID, Seq: e.Seq})
	}
}

func (p *conservative) Leave(now quantity.Instant, id planner.ID) {
	p.left = p.book.Leave(id)
	e, s := &p.left, &p.slots[id]
	switch e.State {
	case book.Waiting:
		p.line.Remove(e.Seq)
		if e.Seq <= p.tested {
			p.plan.give(e, s, s.start)
			p.freed = true
		}
	case book.Running:
		p.running[e.Class].Remove(ends.Task{End: e.End, ID: id, Devices: e.Task.Devices})
		p.plan.give(e, s, now)
		p.freed = true
	case book.Absent, book.Refused:
	}
}

func (p *conservative) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	late := now != p.planned && (p.overrun(now) || p.due <= now)
	if !p.freed && p.tested == p.book.Last() && !late {
		return
	}
	p.plan.forward(now)
	switch {
	case p.switched() || p.overrun(now) || p.due < now: // what begins before now was missed, for somebody ran past his plan
		p.rebuild(now)
		p.places = p.line.From(0, p.places[:0])
	case p.freed || late:
		p.places = p.line.From(0, p.places[:0])
	default:
		p.places = p.line.From(p.tested, p.places[:0])
	}
	if len(p.places) == p.line.Len() {
		p.due = quantity.Never
	}
	for _, q := range p.places {
		e, s := p.book.At(q.ID), &p.slots[q.ID]
		if q.Seq <= p.tested {
			p.plan.give(e, s, s.start)
		}
		p.settle(now, e, s, out)
	}
	p.freed, p.tested, p.planned = false, p.book.Last(), now
}

// settle gives a task the slot in which it ends first, and starts it if that begins now.
func (p *conservative) settle(now quantity.Instant, e *book.Entry, s *slot, out *planner.Out) {
	first := true
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		t := &p.trial
		p.plan.earliest(now, e, bits.TrailingZeros32(m), t)
		t.end, t.until = quantity.Never, quantity.Never
		if e.Task.Run != nil {
			t.end = t.start.Add(e.Task.Run[t.class])
			t.until = max(t.end, t.start+1)
		}
		if first || t.end < p.best.end || t.end == p.best.end && t.start < p.best.start {
			p.best, p.trial = p.trial, p.best
			first = false
		}
	}
	*s, p.best = p.best, *s // what the old slot had allocated is used again
	p.plan.take(e, s, s.start)
	if s.start > now {
		p.due = min(p.due, s.start)
		return
	}
	p.line.Remove(e.Seq)
	if p.plan == plan(&p.lanes) {
		p.book.StartOn(now, e, s.class, s.node, s.devices, out)
	} else {
		p.book.Start(now, e, s.class, out)
	}
	p.running[s.class].Add(ends.Task{End: e.End, ID: e.Task.ID, Devices: e.Task.Devices})
}

// overrun says whether something runs past its plan.
func (p *conservative) overrun(now quantity.Instant) bool {
	for c := range p.book.Pool.Classes() {
		if t, ok := p.running[c].First(); ok && t.End <= now {
			return true
		}
	}
	return false
}

// switched says whether the plan must be kept the other way now, and turns to that.
func (p *conservative) switched() bool {
	want := plan(&p.counts)
	if p.book.Bound > 0 {
		want = &p.lanes
	}
	if want == p.plan {
		return false
	}
	p.plan = want
	return true
}

// rebuild plans anew what runs, and nobody else.
func (p *conservative) rebuild(now quantity.Instant) {
	p.plan.clear(now)
	p.tested = 0
	p.all = p.all[:0]
	for c := range p.book.Pool.Classes() {
		p.all = p.running[c].Append(p.all)
	}
	for _, t := range p.all {
		e, s := p.book.At(t.ID), &p.slots[t.ID]
		s.until = max(e.End, now+1)
		s.node, s.devices = p.book.Pool.Where(&e.Task, s.devices[:0])
		p.plan.take(e, s, now)
	}
}

// Reservations has one for everybody who waited at the last plan.
func (p *conservative) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	p.places = p.line.From(0, p.places[:0])
	for _, q := range p.places {
		if s := &p.slots[q.ID]; q.Seq <= p.tested {
			out = append(out, planner.Reservation{Task: q.ID, Class: uint8(s.class), Start: s.start, End: s.end})
		}
	}
	return out
}
