package preempt

import (
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// rank lists the tasks that may be stopped, the highest rank first and of one rank the latest.
func (p *Planner) rank(now quantity.Instant) {
	p.victims = p.victims[:0]
	for _, id := range p.running {
		e, r := p.book.At(id), &p.records[id]
		r.rank = p.rule.Rank(now, e, r)
		if p.stoppable(now, e, r) {
			p.victims = append(p.victims, id)
		}
	}
	slices.SortFunc(p.victims, func(a, b planner.ID) int { return p.compare(b, a) })
}

func (p *Planner) stoppable(now quantity.Instant, e *book.Entry, r *Record) bool {
	return !e.Task.Fixed && now.Sub(r.since) >= patience*p.cost && e.End > now.Add(p.cost)
}

// makeRoom stops tasks of higher ranks on one class, if that lets a task start there; on the class where it ends first.
func (p *Planner) makeRoom(id planner.ID, out *planner.Out) {
	e, bid := p.book.At(id), p.records[id].rank+p.rule.Margin
	for open := e.Task.Classes; open != 0; {
		class := -1
		for m := open; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); class < 0 || e.Run(c) < e.Run(class) {
				class = c
			}
		}
		open &^= 1 << class
		if p.stopFor(e, bid, class, out) {
			return
		}
	}
}

// stopFor stops as many tasks of a rank above bid as it takes, and nobody if all would not do.
func (p *Planner) stopFor(e *book.Entry, bid int64, class int, out *planner.Out) bool {
	n := 0
	for ; n < len(p.victims) && !p.ahead.Fits(&e.Task, class); n++ {
		v := p.book.At(p.victims[n])
		if p.records[v.Task.ID].rank <= bid {
			break
		}
		if int(v.Class) == class {
			p.ahead.Give(&v.Task)
		}
	}
	fits := p.ahead.Fits(&e.Task, class)
	// From the last one back: who is not needed after all goes on.
	for i := n - 1; i >= 0; i-- {
		v := p.book.At(p.victims[i])
		if int(v.Class) != class {
			continue
		}
		p.again(v)
		if fits && !p.ahead.Fits(&e.Task, class) {
			p.ahead.Give(&v.Task)
			p.stop(v.Task.ID, anywhere, out)
			p.victims = slices.Delete(p.victims, i, i+1)
		}
	}
	if fits {
		p.take(&e.Task, class)
	}
	return fits
}

// again puts a running task back where it is, in what is ahead.
func (p *Planner) again(e *book.Entry) {
	at, devices := p.book.Pool.Where(&e.Task, p.room[:0])
	p.ahead.Hold(&e.Task, at, devices)
	p.room = devices
}

// take sets devices of a class aside for a task in what is ahead, if there are enough; which ones is of no matter.
func (p *Planner) take(t *planner.Task, class int) {
	p.room, _, _ = p.ahead.Take(t, class, p.room[:0])
}

// stop tells a running task to leave.
func (p *Planner) stop(id planner.ID, to int, out *planner.Out) {
	i, _ := slices.BinarySearch(p.running, id)
	p.running = slices.Delete(p.running, i, i+1)
	i, _ = slices.BinarySearch(p.leaving, id)
	p.leaving = slices.Insert(p.leaving, i, id)
	p.records[id].leaving, p.records[id].to = true, to
	out.Decisions = append(out.Decisions, planner.Decision{Verb: planner.Preempt, Task: id})
}

// migrate moves running tasks to faster classes that are free.
func (p *Planner) migrate(now quantity.Instant, out *planner.Out) {
	for i := 0; i < len(p.running); i++ {
		id := p.running[i]
		e, r := p.book.At(id), &p.records[id]
		if e.Task.Run == nil || e.Task.Devices == 0 || !p.stoppable(now, e, r) {
			continue
		}
		if class := p.faster(now, e); class >= 0 {
			p.ahead.Give(&e.Task)
			p.take(&e.Task, class)
			p.stop(id, class, out)
			i-- // the next one stands in its place
		}
	}
}

// faster is the class with room where a running task would end first, with a gain above the cost; -1 if there is none.
func (p *Planner) faster(now quantity.Instant, e *book.Entry) int {
	here := e.Run(int(e.Class))
	left := int64(e.End.Sub(now))
	best, class := left-2*int64(p.cost), -1
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		if run := e.Run(c); run < here && p.ahead.Fits(&e.Task, c) && p.book.Pool.Fits(&e.Task, c) {
			if there := quantity.MulDiv(left, run, here); there < best {
				best, class = there, c
			}
		}
	}
	return class
}
