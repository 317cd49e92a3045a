// Package preempt is shared by planners that stop running tasks for waiting ones. A kind adds a Rule: which task goes first, and which
// makes way for which. Every stop costs Options.Checkpoint, during which the devices stay taken, and every later start Options.Restore.
//
// Waiting tasks are served by rank, the lowest first, then by first arrival. A task that fits starts on the class with room where it ends
// first. One that does not may stop running tasks of a rank above its own, the highest and latest first, until it fits, on the class where
// it ends first of those where that helps. Room that stopped tasks will leave is set aside for those it was made for.
//
// Tasks that are Fixed are never stopped.
//
// Against thrashing: only a task that has run for four times the cost of a stop is stopped, so that a stop costs at most a fifth of what
// was done; and none that is planned to end within that cost.
//
// Under a rule that moves work, a running task is moved to a faster class that no waiting task wants, if it is planned to end sooner by
// more than the cost of the move, that cost already paid.
package preempt

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/pool"
)

const (
	// patience is how many times its cost a task runs before it may be stopped.
	patience = 4
	// seekers bounds the waiting tasks that may look for tasks to stop in one plan. It bounds the work, and nothing else: one that finds
	// nothing now is there at the next plan.
	seekers = 16
)

// Rule is what a kind adds.
type Rule struct {
	// Rank of a task, the lowest first: of one that waits as it comes into the queue, where it keeps it; of one that runs as it
	// stands now.
	Rank func(now quantity.Instant, e *book.Entry, r *Record) int64
	// Margin is by how much more than its own rank a task that waits must be passed by those that it stops.
	Margin int64
	// Rises is the next instant after now at which the rank of a running task rises; nil where ranks do not rise.
	Rises func(now quantity.Instant, e *book.Entry, r *Record) quantity.Instant
	// Anew is how long a task waits until it is ranked as if it had never run, 0 for ever; nil where that is so for all.
	Anew func(r *Record) time.Duration
	// Moves: running tasks move to faster classes.
	Moves bool
}

// anywhere is the target of a stopped task that is not moved.
const anywhere = -1

// Record is what is known of a task beyond its entry. It survives a stop.
type Record struct {
	// Attained is the device time that it had before the present run, Ran how long that took.
	Attained, Ran time.Duration
	// order is the number of its first arrival; since when it waits or runs.
	order int64
	since quantity.Instant
	// stopped: it has a checkpoint, and its next start restores it. leaving: it makes one.
	stopped, leaving bool
	// to is the class that it leaves for, or anywhere.
	to int
	// rank while it waits, or as the last plan found it.
	rank int64
	// left is the instant at which it gave its devices back after a stop.
	left quantity.Instant
}

// Planner is the state machine that serves tasks under a Rule (planner.Planner). Make it with New. Invariants: waiting is sorted by rank,
// then order; running and leaving are sorted by id.
type Planner struct {
	rule             Rule
	book             *book.Book
	ahead            *pool.Pool // what will be free when those who leave are gone, less what is kept for others
	records          []Record   // by id
	waiting          []planner.ID
	running, leaving []planner.ID
	victims          []planner.ID
	room             []planner.Device
	cost             time.Duration
	restore          time.Duration
	news             bool
	planned          quantity.Instant
}

// New is a planner under a rule. An error of kind Invalid lists what is wrong with the options.
func New(o planner.Options, rule Rule) (planner.Planner, error) {
	b, err := book.New(o.Cluster)
	if o.Restore < 0 || o.Checkpoint < 0 {
		err = errors.Join(err, errkind.Errorf(errkind.Invalid, "a restore of %v and a checkpoint of %v: give 0 or more for both", o.Restore,
			o.Checkpoint))
	}
	if err != nil {
		return nil, &errkind.Error{Kind: errkind.Invalid, Err: err}
	}
	p := &Planner{rule: rule, book: b, cost: o.Restore + o.Checkpoint, restore: o.Restore, planned: -1 << 63}
	if p.ahead, err = pool.New(o.Cluster); err != nil {
		return nil, err
	}
	return p, nil
}

// Arrive is the contract's.
func (p *Planner) Arrive(now quantity.Instant, t planner.Task) {
	p.news = true
	for int(t.ID) >= len(p.records) {
		p.records = append(p.records, Record{})
	}
	e := p.book.Arrive(now, t)
	if e == nil {
		return
	}
	r := &p.records[t.ID]
	// A task that gave its devices back in this instant is here again. (If a stopped task ended instead, and its id is reused in the same
	// instant, the new one inherits its device time.)
	if !r.stopped || r.left != now {
		*r = Record{order: e.Seq}
	}
	r.since, r.to, r.rank = now, anywhere, p.rule.Rank(now, e, r)
	p.enqueue(t.ID)
}

// Leave is the contract's.
func (p *Planner) Leave(now quantity.Instant, id planner.ID) {
	p.news = true
	e, r := p.book.Leave(id), &p.records[id]
	switch e.State {
	case book.Waiting:
		p.dequeue(id)
		r.stopped = false
	case book.Running:
		r.Attained, r.Ran = r.Had(now, &e), r.Ran+now.Sub(r.since)
		from := &p.running
		if r.leaving {
			from = &p.leaving
		}
		i, _ := slices.BinarySearch(*from, id)
		*from = slices.Delete(*from, i, i+1)
		r.stopped, r.leaving, r.left = r.leaving, false, now
	case book.Absent, book.Refused:
	}
}

// Had is the device time that a task has had by now: devices x share x time.
func (r *Record) Had(now quantity.Instant, e *book.Entry) time.Duration {
	if e.State != book.Running {
		return r.Attained
	}
	// Microseconds, lest a thousand devices pass 63 bits within months.
	return r.Attained + now.Sub(r.since)/time.Microsecond*time.Duration(e.Task.Devices)*time.Duration(
		e.Task.Share)/planner.Whole*time.Microsecond
}

// HasHad is when a running task will have had so much device time, more than it has had; quantity.Never if it has no devices.
func HasHad(now quantity.Instant, e *book.Entry, r *Record, much time.Duration) quantity.Instant {
	if e.Task.Devices == 0 {
		return quantity.Never
	}
	wants := int64(much - r.Had(now, e))
	return now.Add(time.Duration(quantity.MulDiv(wants, planner.Whole, int64(e.Task.Devices)*int64(e.Task.Share))) + time.Microsecond)
}

// compare orders waiting tasks.
func (p *Planner) compare(a, b planner.ID) int {
	x, y := &p.records[a], &p.records[b]
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.order, y.order))
}

func (p *Planner) enqueue(id planner.ID) {
	i, _ := slices.BinarySearchFunc(p.waiting, id, p.compare)
	p.waiting = slices.Insert(p.waiting, i, id)
}

func (p *Planner) dequeue(id planner.ID) {
	i, _ := slices.BinarySearchFunc(p.waiting, id, p.compare)
	p.waiting = slices.Delete(p.waiting, i, i+1)
}

// Plan is the contract's.
func (p *Planner) Plan(now quantity.Instant, out *planner.Out) {
	p.book.Refuse(out)
	if !p.news && p.planned == now {
		return
	}
	p.news, p.planned = false, now
	p.renew(now)
	p.look()
	p.rank(now)
	sought := 0
	for i := 0; i < len(p.waiting); {
		id := p.waiting[i]
		switch {
		case sought == seekers && p.ahead.Full() && p.book.At(id).Task.Devices > 0:
		case p.start(now, id, out):
			continue // the next one stands in its place
		case p.keep(id):
		case sought < seekers:
			sought++
			p.makeRoom(id, out)
		}
		i++
	}
	if p.rule.Moves {
		p.migrate(now, out)
	}
}

// renew ranks long-waiting tasks anew.
func (p *Planner) renew(now quantity.Instant) {
	if p.rule.Anew == nil {
		return
	}
	for i := 0; i < len(p.waiting); i++ {
		id := p.waiting[i]
		r := &p.records[id]
		if after := p.rule.Anew(r); after > 0 && now.Sub(r.since) >= after {
			p.dequeue(id)
			r.Attained, r.Ran = 0, 0
			r.rank = p.rule.Rank(now, p.book.At(id), r)
			p.enqueue(id) // before i: nobody is passed over
		}
	}
}

// look makes ahead what is free once those who leave are gone, less what those who move are to have.
func (p *Planner) look() {
	p.ahead.CopyFrom(p.book.Pool)
	for _, id := range p.leaving {
		p.ahead.Give(&p.book.At(id).Task)
	}
	for _, id := range p.leaving {
		if r := &p.records[id]; r.to != anywhere {
			p.take(&p.book.At(id).Task, r.to)
		}
	}
}

// start starts a task on the class where it ends first, unless what is free there is kept for others.
func (p *Planner) start(now quantity.Instant, id planner.ID, out *planner.Out) bool {
	e, r := p.book.At(id), &p.records[id]
	class, ok := p.book.Fastest(e)
	if !ok || !p.ahead.Fits(&e.Task, class) {
		return false
	}
	from, said := len(out.Devices), len(out.Decisions)
	p.book.Start(now, e, class, out)
	at := out.Decisions[said].Node
	if p.ahead.CanHold(&e.Task, at, out.Devices[from:]) {
		p.ahead.Hold(&e.Task, at, out.Devices[from:])
	} else {
		// Others were promised these very devices; they will find as many elsewhere.
		p.take(&e.Task, class)
	}
	p.dequeue(id)
	if r.stopped && e.End != quantity.Never {
		e.End = e.End.Add(p.restore)
	}
	r.stopped, r.since = false, now
	i, _ := slices.BinarySearch(p.running, id)
	p.running = slices.Insert(p.running, i, id)
	return true
}

// keep sets room that is coming aside for a task, on the class where it ends first.
func (p *Planner) keep(id planner.ID) bool {
	e := p.book.At(id)
	class := -1
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		if c := bits.TrailingZeros32(m); (class < 0 || e.Run(c) < e.Run(class)) && p.ahead.Fits(&e.Task, c) {
			class = c
		}
	}
	if class >= 0 {
		p.take(&e.Task, class)
	}
	return class >= 0
}

// Wake is the next instant at which a rank, or the patience with a running or waiting task, changes what may be done for waiting tasks.
func (p *Planner) Wake(now quantity.Instant) quantity.Instant {
	at := quantity.Never
	if len(p.waiting) == 0 {
		return at
	}
	soon := func(t quantity.Instant) {
		if t > now {
			at = min(at, t)
		}
	}
	for _, id := range p.running {
		e, r := p.book.At(id), &p.records[id]
		soon(r.since.Add(patience * p.cost))
		if p.rule.Rises != nil {
			soon(p.rule.Rises(now, e, r))
		}
	}
	if p.rule.Anew == nil {
		return at
	}
	for _, id := range p.waiting {
		r := &p.records[id]
		if after := p.rule.Anew(r); after > 0 {
			soon(r.since.Add(after))
		}
	}
	return at
}

// Reservations are none.
func (p *Planner) Reservations(_ quantity.Instant, out []planner.Reservation) []planner.Reservation {
	return out
}

// Kind is a kind that stops work under a rule.
func Kind(name, summary string, rule func(planner.Options) Rule) planner.Kind {
	return planner.Kind{
		Name: name, Summary: summary, Preempts: true,
		New: func(o planner.Options) (planner.Planner, error) { return New(o, rule(o)) },
	}
}

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
	// From the last one back: a task that need not be stopped after all goes on.
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
