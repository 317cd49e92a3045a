package world

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/agenda"
	"sluice.dev/sluice/internal/lab/swarm"
)

// stage is what all parts of a world stand on: the time, what is to happen, the mechanism, and the truth about every slice. Invariant: a
// place is here only during a call of the mechanism.
type stage struct {
	o *Options
	c *swarm.Cluster
	m swarm.Mechanism

	now    quantity.Instant
	events agenda.Heap[event]
	// here is the place of the call that the mechanism is in, nowhere outside of one.
	here swarm.Place

	nodes
	counts   Counts
	measured bool // within the window
}

const nowhere = swarm.Place(-1)

// event is what the heap holds. message is of messages, timers and reports.
type event struct {
	kind  eventKind
	epoch uint32 // of a timer's zone: those of an earlier life are void
	index int32
	swarm.Message
}

type eventKind uint8

const (
	arrives  eventKind = iota // message
	wakes                     // message to its own place
	reports                   // A is the node, B its free slices
	digested                  // index of the digest under way, To the gate
	ends                      // Task
	ticks                     // index of the zone: its nodes report
	tocks                     // index of the zone: it sends its digest
	rigidIn                   // index of the zone
	rigidOut                  // index of the rigid job
	strikes                   // index of the fault
	passes                    // index of the fault
	opens                     // the window
	closes                    // the window
)

// enter makes a place that is alive the one where the mechanism is.
func (w *stage) enter(p swarm.Place) bool {
	if z := w.zoneOf(p); z >= 0 && w.zones[z].dead {
		return false
	}
	w.here = p
	return true
}

// zoneOf is the zone that a place lies in, -1 for gates and the center.
func (w *stage) zoneOf(p swarm.Place) int32 {
	switch role, i := w.c.Whose(p); role {
	case swarm.Node:
		return w.c.Zone(i)
	case swarm.Zone:
		return i
	default:
		return -1
	}
}

// must stops the run: a mechanism has done what its contract forbids. It is apart so that what is checked at every event costs
// nothing but the check.
func (w *stage) must(format string, args ...any) {
	invariant.Check(false, "mechanism %s at %d ns: "+format, append([]any{w.o.Kind.Name, int64(w.now)}, args...)...)
}

// local stops a call that is not made at the node.
func (w *stage) local(node int32) {
	if w.here != w.c.At(node) && !w.o.Kind.Omniscient {
		w.must("node %d is not here: the call is made at place %d", node, w.here)
	}
}

// changed tells a node that is alive that its slices are others.
func (w *stage) changed(node int32, ended swarm.TaskID) {
	if w.enter(w.c.At(node)) {
		w.m.Changed(w.now, node, ended)
	}
}
