// Package ranked is list scheduling by a rank of the kind's own: waiting tasks are looked at in the order of rank, the lowest first, and of
// one rank in the order of arrival. A task starts on the class with room now where it is planned to end first. One that does not fit is
// skipped, or, under a rule that keeps a reservation, the first that does not fit is reserved a place as EASY reserves it (package head),
// and those behind it may start if that does not delay it.
//
// A plan looks at waiting tasks until no device is free of a class that any of them could use; on the way a task for which no device of its
// own classes is free costs a comparison.
package ranked

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/head"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Rank of a waiting task at an instant: the lowest goes first. It is a function of its arguments.
type Rank func(now quantity.Instant, e *book.Entry) int64

// Rule is what a kind adds.
type Rule struct {
	// First ranks all that wait.
	First Rank
	// Behind ranks those behind the first that does not fit, where that is another order; nil where it is the same.
	Behind Rank
	// Ages: ranks change while a task waits. They are found anew in every plan.
	Ages bool
	// Keeps: the first that does not fit has a reservation. Otherwise it is passed over.
	Keeps bool
}

// Planner is the machine. Make it with New.
type Planner struct {
	rule    Rule
	book    *book.Book
	first   queue.Order
	behind  queue.Order // empty where the rule has no other order
	running head.Running
	keeper  *head.Keeper
	// news: something came or left since the last plan, which was at planned.
	news    bool
	planned quantity.Instant
	// wants counts waiting tasks by the classes that they could use, wanted is the set of classes for which it is not 0.
	wants  [planner.MaxClasses]int32
	wanted uint32
}

// New is a planner under a rule.
func New(o planner.Options, r Rule) (planner.Planner, error) {
	b, err := book.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	p := &Planner{rule: r, book: b, planned: -1 << 63}
	if p.keeper, err = head.New(o.Cluster, b, &p.running); err != nil {
		return nil, err
	}
	return p, nil
}

// Arrive is the contract's.
func (p *Planner) Arrive(now quantity.Instant, t planner.Task) {
	p.news = true
	e := p.book.Arrive(now, t)
	if e == nil {
		return
	}
	p.first.Put(placeOf(e), p.rule.First(now, e))
	if p.rule.Behind != nil {
		p.behind.Put(placeOf(e), p.rule.Behind(now, e))
	}
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		p.wants[bits.TrailingZeros32(m)]++
	}
	p.wanted |= e.Task.Classes
}

func placeOf(e *book.Entry) queue.Place { return queue.Place{ID: e.Task.ID, Seq: e.Seq} }

// Leave is the contract's.
func (p *Planner) Leave(_ quantity.Instant, id planner.ID) {
	p.news = true
	switch e := p.book.Leave(id); e.State {
	case book.Waiting:
		p.unqueue(&e)
	case book.Running:
		p.running.Ended(&e)
	case book.Absent, book.Refused:
	}
}

func (p *Planner) unqueue(e *book.Entry) {
	p.first.Remove(placeOf(e))
	if p.rule.Behind != nil {
		p.behind.Remove(placeOf(e))
	}
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		if p.wants[c]--; p.wants[c] == 0 {
			p.wanted &^= 1 << c
		}
	}
}

// Plan is the contract's.
func (p *Planner) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	if !p.news && p.planned == now {
		return
	}
	p.news, p.planned = false, now
	if p.rule.Ages {
		p.first.Rerank(func(q queue.Place) int64 { return p.rule.First(now, p.book.At(q.ID)) })
	}
	if !p.rule.Keeps {
		for i := 0; i < p.first.Len() && p.room(); {
			e := p.book.At(p.first.At(i).ID)
			if class, ok := p.fits(e); ok {
				p.start(now, e, class, out)
			} else {
				i++
			}
		}
		return
	}
	for p.first.Len() > 0 && p.room() {
		e := p.book.At(p.first.First().ID)
		class, ok := p.fits(e)
		if !ok {
			p.overtake(now, e, out)
			return
		}
		p.start(now, e, class, out)
	}
}

// overtake reserves a place for the first that does not fit, and starts whom that leaves room for.
func (p *Planner) overtake(now quantity.Instant, blocked *book.Entry, out *planner.Out) {
	order := &p.first
	if p.rule.Behind != nil {
		order = &p.behind
	}
	r := p.keeper.Reserve(now, blocked)
	for i := 0; i < order.Len() && p.room(); {
		e := p.book.At(order.At(i).ID)
		if e != blocked && !p.full(e) {
			if class, ok := p.keeper.Overtakes(now, &r, blocked, e); ok {
				p.start(now, e, class, out)
				continue
			}
		}
		i++
	}
}

// room: a waiting task may fit. One answer for all where counting is enough for all.
func (p *Planner) room() bool {
	return p.book.Bound > 0 || p.wanted&p.book.Pool.WithFree() != 0
}

// full says, of tasks for which counting is enough, that no device of their classes is free.
func (p *Planner) full(e *book.Entry) bool {
	return e.Loose && e.Task.Classes&p.book.Pool.WithFree() == 0
}

func (p *Planner) fits(e *book.Entry) (class int, ok bool) {
	if p.full(e) {
		return 0, false
	}
	return p.book.Fastest(e)
}

func (p *Planner) start(now quantity.Instant, e *book.Entry, class int, out *planner.Out) {
	p.book.Start(now, e, class, out)
	p.unqueue(e)
	p.running.Began(e)
}

// Reservations has one where the rule keeps one: that of the first, as ranked in the last plan.
func (p *Planner) Reservations(now quantity.Instant, out []planner.Reservation) []planner.Reservation {
	if !p.rule.Keeps || p.first.Len() == 0 {
		return out
	}
	e := p.book.At(p.first.First().ID)
	if _, ok := p.fits(e); ok {
		return out // it starts with the next plan
	}
	r := p.keeper.Reserve(now, e)
	return append(out, planner.Reservation{Task: e.Task.ID, Class: uint8(r.Class), Start: r.At, End: r.End})
}

// Kind is a kind under a rule that needs no options; rule is asked once for each planner.
func Kind(name, summary string, rule func(planner.Cluster) Rule) planner.Kind {
	return planner.Kind{
		Name: name, Summary: summary,
		New: func(o planner.Options) (planner.Planner, error) { return New(o, rule(o.Cluster)) },
	}
}

// Shortest ranks by the planned run time in nanoseconds on the class where that is shortest, those without one last.
func Shortest(_ quantity.Instant, e *book.Entry) int64 { return e.Shortest() }

// Earliest ranks by arrival.
func Earliest(_ quantity.Instant, e *book.Entry) int64 { return e.Seq }
