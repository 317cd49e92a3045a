package world

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/queue"
)

// before is when tasks arrived that run at time 0: before any window.
const before = quantity.Instant(-1)

// task is the truth about one. Its slot is kept until it is over and its deadline has passed: until then a party may take it for alive.
type task struct {
	swarm.Task
	// length on a node that is no straggler.
	length time.Duration
	node   int32
	slot   int8
	state  taskState
	// past: its deadline has been looked at.
	past bool
}

// deadlines are the tasks of one patience in the order in which they arrived, which is that of their deadlines: so a deadline costs
// no place in the heap.
type deadlines = queue.Ring[swarm.TaskID]

// tasks are all that have arrived. Invariant: waiting is how many of them have neither started nor expired.
type tasks struct {
	*stage
	rigids *rigids
	list   []task
	spare  []uint32 // slots of tasks that are over
	// waiting tasks; expiring by their two patiences.
	waiting            int64
	expiring, longOnes deadlines
}

type taskState uint8

const (
	unused taskState = iota
	waits
	runs
	over
)

// admit gives a task a slot.
func (w *tasks) admit(t swarm.Task, length time.Duration) swarm.Task {
	var slot, generation uint32
	if n := len(w.spare); n > 0 {
		slot, w.spare = w.spare[n-1], w.spare[:n-1]
		generation = uint32(w.list[slot].ID >> 32)
	} else {
		slot = uint32(len(w.list))
		w.list = append(w.list, task{})
	}
	t.ID = swarm.NewTaskID(slot, generation+1)
	w.list[slot] = task{Task: t, length: length, state: waits, past: t.Deadline == quantity.Never}
	w.waiting++
	switch {
	case t.Deadline == quantity.Never:
	case t.Long:
		w.longOnes.Put(t.ID)
	default:
		w.expiring.Put(t.ID)
	}
	if w.counted(&t) {
		w.counts.Arrived++
	}
	return t
}

// counted: the task arrived within the window.
func (w *tasks) counted(t *swarm.Task) bool { return t.Arrived >= w.o.From && t.Arrived < w.o.Until }

// known is a task that is not over.
func (w *tasks) known(id swarm.TaskID) (swarm.Task, bool) {
	if id.Slot() < len(w.list) {
		if t := &w.list[id.Slot()]; t.ID == id && (t.state == waits || t.state == runs) {
			return t.Task, true
		}
	}
	return swarm.Task{}, false
}

// startable is a task that may be started now, or why it may not.
func (w *tasks) startable(id swarm.TaskID) (*task, swarm.Outcome) {
	if id.Slot() >= len(w.list) || id == 0 {
		w.must("there is no task %x", uint64(id))
	}
	t := &w.list[id.Slot()]
	switch {
	case t.ID != id && w.o.Flow.Patience == Forever && (w.o.Flow.LongShare == 0 || w.o.Flow.LongPatience == Forever):
		return nil, w.refuse(swarm.Elsewhere) // nothing expires: it has run
	case t.ID != id || t.Deadline <= w.now:
		return nil, w.refuse(swarm.Over)
	case t.state != waits:
		return nil, w.refuse(swarm.Elsewhere)
	}
	return t, swarm.Started
}

func (w *tasks) refuse(o swarm.Outcome) swarm.Outcome {
	w.counts.Refused[o]++
	return o
}

// land starts a task on a slice that is busy for it.
func (w *tasks) land(t *task, node int32, slot int8) {
	t.state, t.node, t.slot = runs, node, slot
	w.waiting--
	w.occupy(t)
	if w.measured {
		w.counts.Starts++
	}
	if w.counted(&t.Task) {
		w.counts.Placed++
	}
	if w.o.Observer != nil {
		w.o.Observer.Landed(w.now, t.Task, node, slot)
	}
}

// occupy lets a task run where it has been put.
func (w *tasks) occupy(t *task) {
	w.on[t.node*w.stride+int32(t.slot)] = t.ID
	w.settle(w.c.Zone(t.node), w.now).used++
	length := t.length
	if w.o.Faults.Stragglers > 0 && int64(keyed(w.o.Seed, forNode, uint64(t.node))%Million) < w.o.Faults.Stragglers {
		length = time.Duration(quantity.MulDiv(int64(length), w.o.Faults.Slow, 1000))
	}
	w.events.Put(w.now.Add(length), event{kind: ends, Message: swarm.Message{Task: t.ID}})
}

// end is the end of a task that still runs.
func (w *tasks) end(id swarm.TaskID) {
	t := &w.list[id.Slot()]
	if t.ID != id || t.state != runs {
		return // its node has died
	}
	node := t.node
	w.leave(t, Ran)
	w.changed(node, id)
}

// leave takes a task from its slice.
func (w *tasks) leave(t *task, f Fate) {
	w.busy[t.node] &^= 1 << t.slot
	w.on[t.node*w.stride+int32(t.slot)] = 0
	w.settle(w.c.Zone(t.node), w.now).used--
	if w.claimed(t.node, t.slot) {
		w.rigids.vacated(t.node, t.slot)
	}
	w.finish(t, f)
}

// finish gives a task its fate.
func (w *tasks) finish(t *task, f Fate) {
	t.state = over
	if w.counted(&t.Task) {
		w.counts.Fates[f]++
	}
	if w.o.Observer != nil && t.Arrived != before {
		w.o.Observer.Over(w.now, t.Task, f)
	}
	w.forget(t)
}

// forget frees the slot of a task that is over, once its deadline has passed.
func (w *tasks) forget(t *task) {
	if t.state == over && t.past {
		t.state = unused
		w.spare = append(w.spare, uint32(t.ID.Slot()))
	}
}

// expire is the deadline of a task.
func (w *tasks) expire(id swarm.TaskID) {
	t := &w.list[id.Slot()]
	t.past = true
	if t.state != waits {
		w.forget(t)
		return
	}
	w.waiting--
	said := t.Task
	w.finish(t, Expired)
	w.here = w.c.GateAt(said.Gate)
	w.m.Expired(w.now, said)
}

// due is the first deadline, Never if there is none.
func (w *tasks) due(r *deadlines) quantity.Instant {
	if r.Len() == 0 {
		return quantity.Never
	}
	return w.list[r.First().Slot()].Deadline
}
