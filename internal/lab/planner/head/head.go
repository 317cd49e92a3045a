// Package head is EASY's one reservation: class and time for the first of a queue that does not fit, and who behind it may
// start without delaying it (Lifka, JSSPP 1995). What order the queue has is its user's business. It tries placements in a
// second pool, so it holds for gangs, shares of devices and hosts with limits too.
package head

import (
	"cmp"
	"math/bits"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ends"
	"sluice.dev/sluice/internal/lab/planner/pool"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// Reservation of a task: it is planned to start on Class at At and to be over by End, quantity.Never where that takes the end
// of a task whose end nobody knows. The zero value with a Class of -1 is none.
type Reservation struct {
	Class   int
	At, End quantity.Instant
	// Spare is how many devices of the class will be free then beyond its own. Only those set it who count devices alone.
	Spare int32
}

// None is no reservation.
func None() Reservation { return Reservation{Class: -1} }

// Or is the better of two: the one that ends first, then the one that starts first, then r.
func (r Reservation) Or(s Reservation) Reservation {
	if r.Class < 0 || s.End < r.End || s.End == r.End && s.At < r.At {
		return s
	}
	return r
}

// End is when a task that starts at an instant on a class is planned to be over.
func End(at quantity.Instant, e *book.Entry, class int) quantity.Instant {
	if e.Task.Run == nil {
		return quantity.Never
	}
	return at.Add(e.Task.Run[class])
}

// Running is what runs, by planned end. The zero value is empty.
type Running [planner.MaxClasses]ends.List

// Began adds a task that has started.
func (r *Running) Began(e *book.Entry) { r[e.Class].Add(entryOf(e)) }

// Ended takes out a task that ran.
func (r *Running) Ended(e *book.Entry) { r[e.Class].Remove(entryOf(e)) }

func entryOf(e *book.Entry) ends.Task {
	return ends.Task{End: e.End, ID: e.Task.ID, Devices: e.Task.Devices}
}

// Keeper finds reservations and keeps one. Make it with New.
type Keeper struct {
	book    *book.Book
	running *Running
	pool    *pool.Pool // in which it looks ahead
	ready   bool       // pool is what will be free when the head starts
	// Scratch buffers, meaningless between calls.
	order []ends.Task
	room  []planner.Device
}

// New is a keeper for the tasks of a book, which is of the cluster c; running is kept by its user.
func New(c planner.Cluster, b *book.Book, running *Running) (*Keeper, error) {
	p, err := pool.New(c)
	if err != nil {
		return nil, err
	}
	return &Keeper{book: b, running: running, pool: p}, nil
}

// Reserve is class and time for a task that fits nowhere now: where it is planned to end first, if all that runs ends as
// planned, and what is past its plan in the next nanosecond. A pass over those behind it begins, as by Begin.
func (k *Keeper) Reserve(now quantity.Instant, e *book.Entry) Reservation {
	k.pool.CopyFrom(k.book.Pool)
	k.ready = false
	running := k.sorted(now)
	best := None()
	open := e.Task.Classes
	for i := 0; i < len(running) && open != 0; {
		at := running[i].End
		for ; i < len(running) && running[i].End == at; i++ {
			k.pool.Give(&k.book.At(running[i].ID).Task)
		}
		for m := open; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); k.pool.Fits(&e.Task, c) {
				open &^= 1 << c
				best = best.Or(Reservation{Class: c, At: at, End: End(at, e, c)})
			}
		}
	}
	return best
}

// Begin begins a pass over those behind the head under a reservation that stands. Nothing may end before the pass is over.
func (k *Keeper) Begin() { k.ready = false }

// Overtakes is the class on which a task behind the head starts now: the one where it ends first among those with room where it is
// planned to be over by the reserved time, or leaves the head its place then; false if there is none. The answer stands
// for a start: who gets true starts the task.
func (k *Keeper) Overtakes(now quantity.Instant, r *Reservation, head, e *book.Entry) (class int, ok bool) {
	if n := e.Task.Classes; n&(n-1) == 0 && !k.book.Pool.Fits(&e.Task, bits.TrailingZeros32(n)) {
		return 0, false // most often, and soon said
	}
	for open := e.Task.Classes; open != 0; {
		class = -1
		for m := open; m != 0; m &= m - 1 {
			if c := bits.TrailingZeros32(m); class < 0 || e.Run(c) < e.Run(class) {
				class = c
			}
		}
		open &^= 1 << class
		if k.book.Pool.Fits(&e.Task, class) && (e.Run(class) <= r.Limit(now) || k.leaves(now, r, head, e, class)) {
			return class, true
		}
	}
	return 0, false
}

// leaves says whether the head has its place at the reserved time if a task that fits starts now and runs past it. If so,
// the task is taken to run.
func (k *Keeper) leaves(now quantity.Instant, r *Reservation, head, e *book.Entry, class int) bool {
	k.ahead(now, r)
	devices, at, _ := k.book.Pool.Take(&e.Task, class, k.room[:0])
	k.room = devices
	k.book.Pool.Give(&e.Task)
	k.pool.Hold(&e.Task, at, devices)
	if k.pool.Fits(&head.Task, r.Class) {
		return true
	}
	k.pool.Give(&e.Task)
	return false
}

// ahead makes the pool what will be free at the reserved time if what runs ends as planned.
func (k *Keeper) ahead(now quantity.Instant, r *Reservation) {
	if k.ready {
		return
	}
	k.ready = true
	k.pool.CopyFrom(k.book.Pool)
	for _, t := range k.sorted(now) {
		if t.End > r.At {
			return
		}
		k.pool.Give(&k.book.At(t.ID).Task)
	}
}

// sorted is what runs by planned end, not before the next nanosecond.
func (k *Keeper) sorted(now quantity.Instant) []ends.Task {
	all := k.order[:0]
	for c := range k.book.Pool.Classes() {
		all = k.running[c].Append(all)
	}
	for i := range all {
		all[i].End = max(all[i].End, now+1)
	}
	slices.SortFunc(all, func(a, b ends.Task) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID)) })
	k.order = all
	return all
}

// Limit is the longest run, in nanoseconds, that starts now and is over by the reserved time.
func (r *Reservation) Limit(now quantity.Instant) int64 {
	if r.At == quantity.Never {
		return queue.Any
	}
	return int64(r.At - now)
}
