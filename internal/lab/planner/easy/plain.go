package easy

import (
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ends"
	"sluice.dev/sluice/internal/lab/planner/pool"
)

// pass is the memory of the plain pass: a second pool in which it looks ahead.
type pass struct {
	pool    *pool.Pool
	running []ends.Task
	ready   bool // pool is what will be free when the head starts
}

// planPlain looks at every task of the queue. The reservation is a class and a time at which, if all that runs then is
// gone, the head fits; a task behind it that runs longer may start on devices that leave that so. Here too an arrival
// tests itself alone until something ends or the reservation moves.
func (p *easy) planPlain(now quantity.Instant, out *planner.Out) {
	from := p.tested
	if p.dirty || p.head.at <= now {
		e := p.heads(now, out)
		if e == nil {
			return
		}
		from = e.Seq
		p.head = p.reservePlain(now, e)
	}
	p.pass.ready = false
	head := p.book.At(p.line.First().ID)
	p.places = p.line.From(from, p.places[:0])
	for _, q := range p.places {
		p.backfillPlain(now, head, p.book.At(q.ID), out)
	}
}

// reservePlain finds class and time for a task that fits nowhere now, whatever it must be counted in.
func (p *easy) reservePlain(now quantity.Instant, e *book.Entry) reservation {
	p.pass.pool.CopyFrom(p.book.Pool)
	running := p.order(now)
	best := reservation{class: -1}
	open := e.Task.Classes
	for i := 0; i < len(running) && open != 0; {
		at := running[i].End
		for ; i < len(running) && running[i].End == at; i++ {
			p.pass.pool.Give(&p.book.At(running[i].ID).Task)
		}
		for m := open; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); p.pass.pool.Fits(&e.Task, c) {
				open &^= 1 << c
				best = best.or(reservation{class: c, at: at, end: end(at, e, c)})
			}
		}
	}
	return best
}

// order sorts what runs by planned end, not before the next nanosecond.
func (p *easy) order(now quantity.Instant) []ends.Task {
	all := p.pass.running[:0]
	for c := range p.book.Pool.Classes() {
		all = p.running[c].Append(all)
	}
	for i := range all {
		all[i].End = max(all[i].End, now+1)
	}
	slices.SortFunc(all, func(a, b ends.Task) int {
		if a.End != b.End {
			if a.End < b.End {
				return -1
			}
			return 1
		}
		return int(a.ID - b.ID)
	})
	p.pass.running = all
	return all
}

// ahead makes the second pool what will be free when the head starts, if tasks end as planned.
func (p *easy) ahead(now quantity.Instant) {
	if p.pass.ready {
		return
	}
	p.pass.ready = true
	p.pass.pool.CopyFrom(p.book.Pool)
	for _, t := range p.order(now) {
		if t.End > p.head.at {
			return
		}
		p.pass.pool.Give(&p.book.At(t.ID).Task)
	}
}

// backfillPlain starts a task behind the head on the class where it ends first, if it may start. A trial decides where it
// would still run at the reserved time.
func (p *easy) backfillPlain(now quantity.Instant, head, e *book.Entry, out *planner.Out) {
	if n := e.Task.Classes; n&(n-1) == 0 && !p.book.Pool.Fits(&e.Task, bits.TrailingZeros32(n)) {
		return // most often, and soon said
	}
	for open := e.Task.Classes; open != 0; {
		class := -1
		for m := open; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); class < 0 || e.Run(c) < e.Run(class) {
				class = c
			}
		}
		open &^= 1 << class
		if !p.book.Pool.Fits(&e.Task, class) {
			continue
		}
		if e.Run(class) <= p.head.limit(now) {
			p.start(now, e, class, out)
			return
		}
		p.ahead(now)
		from := len(out.Devices)
		devices, at, _ := p.book.Pool.Take(&e.Task, class, out.Devices)
		p.book.Pool.Give(&e.Task)
		p.pass.pool.Hold(&e.Task, at, devices[from:])
		if p.pass.pool.Fits(&head.Task, p.head.class) {
			p.start(now, e, class, out)
			return
		}
		p.pass.pool.Give(&e.Task)
	}
}
