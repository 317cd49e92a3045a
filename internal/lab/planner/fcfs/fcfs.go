// Package fcfs is strict first-come, first-served: the task that came first starts as soon as it fits, and nobody before
// it. Among classes with room it takes the one where it ends first.
package fcfs

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Kind is the kind.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "fcfs",
		Summary: "strict first-come: nobody starts before the one who came first",
		New: func(o planner.Options) (planner.Planner, error) {
			b, err := book.New(o.Cluster)
			if err != nil {
				return nil, err
			}
			return &fcfs{book: b}, nil
		},
	}
}

type fcfs struct {
	book *book.Book
	line queue.Line
	// stuck: the head does not fit, and nothing was given back since.
	stuck bool
}

func (p *fcfs) Arrive(now quantity.Instant, t planner.Task) {
	if e := p.book.Arrive(now, t); e != nil {
		p.line.Push(queue.Place{ID: t.ID, Seq: e.Seq})
	}
}

func (p *fcfs) Leave(_ quantity.Instant, id planner.ID) {
	switch e := p.book.Leave(id); e.State {
	case book.Waiting:
		p.line.Remove(e.Seq)
		p.stuck = false
	case book.Running:
		p.stuck = false
	case book.Absent, book.Refused:
	}
}

func (p *fcfs) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	for p.line.Len() > 0 && !p.stuck {
		head := p.line.First()
		e := p.book.At(head.ID)
		class, ok := p.book.Fastest(e)
		if !ok {
			p.stuck = true
			return
		}
		p.book.Start(now, e, class, out)
		p.line.Remove(head.Seq)
	}
}

// Reservations are none: when the head starts depends on ends that nobody may know.
func (p *fcfs) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}
