package easy

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

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
