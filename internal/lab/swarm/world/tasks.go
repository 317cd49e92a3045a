package world

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

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

type taskState uint8

const (
	unused taskState = iota
	waits
	runs
	over
)

// arrivals is the stream of jobs: the next one, and when.
type arrivals struct {
	at   quantity.Instant // Never when there are no more
	gap  time.Duration    // mean
	next uint64
	// logGap is the mean gap of a log, whose lines are counted from first.
	logGap time.Duration
	first  uint64
	mix    [swarm.MaxClasses]int64 // cumulated
	job    []swarm.Task            // scratch
}

func (w *World) beginFlow() {
	a := &w.arrivals
	a.gap = w.o.jobGap()
	sum := int64(0)
	for i, m := range w.o.Flow.Mix {
		sum += m
		a.mix[i] = sum
	}
	if n := len(w.o.Flow.Log); n > 0 {
		for _, q := range w.o.Flow.Log {
			a.logGap += q.Gap
		}
		a.logGap = max(1, a.logGap/time.Duration(n))
		a.first = keyed(w.o.Seed, forLog) % uint64(n)
	}
	w.scheduleJob()
}

// logged is the line of the next job, nil if there is no log.
func (w *World) logged() *Request {
	if n := uint64(len(w.o.Flow.Log)); n > 0 {
		return &w.o.Flow.Log[(w.arrivals.first+w.arrivals.next)%n]
	}
	return nil
}

// scheduleJob draws when the next job arrives.
func (w *World) scheduleJob() {
	a := &w.arrivals
	a.next++
	s := prng.New(w.o.Seed, forJob, a.next)
	gap := exponential(&s, a.gap)
	if q := w.logged(); q != nil {
		gap = time.Duration(quantity.MulDiv(int64(q.Gap), int64(a.gap), int64(a.logGap)))
	}
	if a.at = w.now.Add(gap); a.at >= w.o.Until || a.gap == never {
		a.at = quantity.Never
	}
}

// arrive brings the next job to its gate. Everything about it is a draw of its own number.
func (w *World) arrive() {
	a, f := &w.arrivals, &w.o.Flow
	s := prng.New(w.o.Seed, forJob, a.next)
	s.Uint64() // the gap
	gate := int32(s.IntN(w.o.Gates))
	x := int64(s.IntN(int(a.mix[len(a.mix)-1])))
	class := uint8(0)
	for x >= a.mix[class] {
		class++
	}
	mean, patience, long := f.Mean, f.Patience, int64(s.IntN(Million)) < f.LongShare
	if long {
		mean, patience = f.LongMean, f.LongPatience
	}
	a.job = a.job[:0]
	for range f.Batch {
		t := swarm.Task{Job: a.next, Arrived: w.now, Deadline: quantity.Never, Gate: gate, Class: class, Long: long}
		if patience != Forever {
			t.Deadline = w.now.Add(patience)
		}
		length := exponential(&s, mean)
		if q := w.logged(); q != nil {
			length = q.Length
		}
		a.job = append(a.job, w.admit(t, length))
	}
	w.scheduleJob()
	w.here = w.c.GateAt(gate)
	w.m.Arrive(w.now, gate, a.job)
}

// admit gives a task a slot.
func (w *World) admit(t swarm.Task, length time.Duration) swarm.Task {
	var slot, generation uint32
	if n := len(w.spare); n > 0 {
		slot, w.spare = w.spare[n-1], w.spare[:n-1]
		generation = uint32(w.tasks[slot].ID >> 32)
	} else {
		slot = uint32(len(w.tasks))
		w.tasks = append(w.tasks, task{})
	}
	t.ID = swarm.NewTaskID(slot, generation+1)
	w.tasks[slot] = task{Task: t, length: length, state: waits, past: t.Deadline == quantity.Never}
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
func (w *World) counted(t *swarm.Task) bool { return t.Arrived >= w.o.From && t.Arrived < w.o.Until }

// Task implements swarm.Port.
func (w *World) Task(id swarm.TaskID) (swarm.Task, bool) {
	if id.Slot() < len(w.tasks) {
		if t := &w.tasks[id.Slot()]; t.ID == id && (t.state == waits || t.state == runs) {
			return t.Task, true
		}
	}
	return swarm.Task{}, false
}

// startable is a task that may be started now, or why it may not.
func (w *World) startable(id swarm.TaskID) (*task, swarm.Outcome) {
	if id.Slot() >= len(w.tasks) || id == 0 {
		w.must("there is no task %x", uint64(id))
	}
	t := &w.tasks[id.Slot()]
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

func (w *World) refuse(o swarm.Outcome) swarm.Outcome {
	w.counts.Refused[o]++
	return o
}

// land starts a task on a slice that is busy for it.
func (w *World) land(t *task, node int32, slot int8) {
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
func (w *World) occupy(t *task) {
	w.on[t.node*w.stride+int32(t.slot)] = t.ID
	w.settle(w.c.Zone(t.node)).used++
	length := t.length
	if w.o.Faults.Stragglers > 0 && int64(keyed(w.o.Seed, forNode, uint64(t.node))%Million) < w.o.Faults.Stragglers {
		length = time.Duration(quantity.MulDiv(int64(length), w.o.Faults.Slow, 1000))
	}
	w.events.Put(w.now.Add(length), event{kind: ends, Message: swarm.Message{Task: t.ID}})
}

// end is the end of a task that still runs.
func (w *World) end(id swarm.TaskID) {
	t := &w.tasks[id.Slot()]
	if t.ID != id || t.state != runs {
		return // its node has died
	}
	node := t.node
	w.leave(t, Ran)
	w.here = w.c.At(node)
	w.m.Changed(w.now, node, id)
}

// leave takes a task from its slice.
func (w *World) leave(t *task, f Fate) {
	w.busy[t.node] &^= 1 << t.slot
	w.on[t.node*w.stride+int32(t.slot)] = 0
	w.settle(w.c.Zone(t.node)).used--
	if w.claimed(t.node, t.slot) {
		w.vacated(t.node, t.slot)
	}
	w.finish(t, f)
}

// finish gives a task its fate.
func (w *World) finish(t *task, f Fate) {
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
func (w *World) forget(t *task) {
	if t.state == over && t.past {
		t.state = unused
		w.spare = append(w.spare, uint32(t.ID.Slot()))
	}
}

// expire is the deadline of a task.
func (w *World) expire(id swarm.TaskID) {
	t := &w.tasks[id.Slot()]
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
