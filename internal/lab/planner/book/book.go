// Package book is the state of planners that decide about time: which tasks wait, which run where and until when, which can never run, and
// the pool of devices behind them. It has no order and no rule of its own.
package book

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/pool"
)

// State of an entry.
type State uint8

// The states. Refused: it can never run, and Plan has not said so yet.
const (
	Absent State = iota
	Waiting
	Running
	Refused
)

// Entry is one task. Invariant: Task.Classes holds only classes that could run it in the empty cluster, exactly one if it
// wants no devices; Class and End are set while it runs.
type Entry struct {
	Task planner.Task
	// Seq numbers arrivals: it is the queue's order, and tells a task from an earlier one of the same id.
	Seq int64
	// Since is when it arrived; of a task that was stopped, when what is left of it did.
	Since quantity.Instant
	// End is the planned end.
	End   quantity.Instant
	Class uint8
	State State
	// Loose: counting devices answers whether it fits (see package pool).
	Loose bool
}

// Run is the planned run time on a class; the longest there is if it is not known.
func (e *Entry) Run(class int) int64 {
	if e.Task.Run == nil {
		return Unknown
	}
	return min(int64(e.Task.Run[class]), Unknown)
}

// Shortest is the planned run time, in nanoseconds, on the class where that is shortest; Unknown if it is not known.
func (e *Entry) Shortest() int64 {
	best := int64(Unknown)
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		best = min(best, e.Run(bits.TrailingZeros32(m)))
	}
	return best
}

// Unknown is the run time of tasks that have none: longer than all others, and below the largest integer, which the
// index of the queue uses for no task at all.
const Unknown = 1<<63 - 2

// Book is the tasks of a planner. Make it with New.
type Book struct {
	Pool    *pool.Pool
	entries []Entry
	seq     int64
	refused []ref
	// Bound counts the tasks, waiting or running, that are not loose. While it is 0, counting is all a planner has to do.
	Bound int
}

// ref points at an entry as it was.
type ref struct {
	id  planner.ID
	seq int64
}

// New is the book of a cluster in which nothing runs.
func New(c planner.Cluster) (*Book, error) {
	p, err := pool.New(c)
	if err != nil {
		return nil, err
	}
	return &Book{Pool: p}, nil
}

// At is the entry of a task that is known. The pointer is good until the next arrival.
func (b *Book) At(id planner.ID) *Entry { return &b.entries[id] }

// Arrive notes a task. It returns nil for one that can never run; Refuse will say so.
func (b *Book) Arrive(now quantity.Instant, t planner.Task) *Entry {
	for int(t.ID) >= len(b.entries) {
		b.entries = append(b.entries, Entry{})
	}
	e := &b.entries[t.ID]
	if e.State != Absent {
		invariant.Check(false, "planner: task %d arrives and is there already", t.ID)
	}
	b.seq++
	*e = Entry{Task: t, Seq: b.seq, Since: now, State: Waiting, Loose: b.Pool.Loose(&t)}
	e.Task.Classes = b.possible(&e.Task)
	if e.Task.Classes == 0 {
		e.State = Refused
		b.refused = append(b.refused, ref{t.ID, e.Seq})
		return nil
	}
	if !e.Loose {
		b.Bound++
	}
	return e
}

// possible is the set of classes that could run t.
func (b *Book) possible(t *planner.Task) uint32 {
	set := t.Classes & (1<<b.Pool.Classes() - 1)
	if t.Devices == 0 {
		// Any class will do; one of them stands for it.
		set = max(set&-set, 1)
	}
	can := uint32(0)
	for m := set; m != 0; m &= m - 1 {
		if c := bits.TrailingZeros32(m); b.Pool.Possible(t, c) {
			can |= 1 << c
		}
	}
	return can
}

// Leave forgets a task, takes back its devices if it ran, and returns it as it was.
func (b *Book) Leave(id planner.ID) Entry {
	if id < 0 || int(id) >= len(b.entries) || b.entries[id].State == Absent {
		invariant.Check(false, "planner: task %d leaves and is not known", id)
	}
	e := &b.entries[id]
	was := *e
	if e.State == Running {
		b.Pool.Give(&e.Task)
	}
	if e.State != Refused && !e.Loose {
		b.Bound--
	}
	e.State = Absent
	return was
}

// Refuse says Never for the tasks that can't run and are still there, in the order of their arrival.
func (b *Book) Refuse(out *planner.Out) {
	for _, r := range b.refused {
		if e := &b.entries[r.id]; e.State == Refused && e.Seq == r.seq {
			e.State = Absent
			out.Decisions = append(out.Decisions, planner.Decision{Verb: planner.Never, Task: r.id})
		}
	}
	b.refused = b.refused[:0]
}

// Start puts a waiting task on devices of a class, where there must be room, and says so.
func (b *Book) Start(now quantity.Instant, e *Entry, class int, out *planner.Out) {
	from := len(out.Devices)
	devices, at, ok := b.Pool.Take(&e.Task, class, out.Devices)
	if !ok || e.State != Waiting {
		invariant.Check(false, "planner: task %d starts on class %d, where there is no room for it, or does not wait", e.Task.ID, class)
	}
	out.Devices = devices
	b.begin(now, e, class, at, from, out)
}

// StartOn is Start on devices of the planner's own choice.
func (b *Book) StartOn(now quantity.Instant, e *Entry, class int, at int32, devices []planner.Device, out *planner.Out) {
	b.Pool.Hold(&e.Task, at, devices)
	from := len(out.Devices)
	out.Devices = append(out.Devices, devices...)
	b.begin(now, e, class, at, from, out)
}

func (b *Book) begin(now quantity.Instant, e *Entry, class int, at int32, from int, out *planner.Out) {
	e.State, e.Class, e.End = Running, uint8(class), quantity.Never
	if e.Task.Run != nil {
		e.End = now.Add(e.Task.Run[class])
	}
	out.Start(e.Task.ID, uint8(class), at, from)
}

// Fastest is the class with room now where the task would end first, the lowest of equals; false if there is no room.
func (b *Book) Fastest(e *Entry) (class int, ok bool) {
	best := int64(0)
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		if run := e.Run(c); (!ok || run < best) && b.Pool.Fits(&e.Task, c) {
			class, best, ok = c, run, true
		}
	}
	return class, ok
}

// Last is the number of the last arrival.
func (b *Book) Last() int64 { return b.seq }
