package world

import (
	"time"

	"sluice.dev/sluice/internal/lab/swarm"
)

// Send implements swarm.Port.
func (w *World) Send(m swarm.Message) {
	if w.here == nowhere || m.To == w.here || m.To < 0 || m.To > w.c.GateAt(int32(w.o.Gates-1)) || int(m.Kind) >= len(w.o.Kind.Messages) {
		w.must("a message of kind %d from place %d to place %d", m.Kind, w.here, m.To)
	}
	m.From = w.here
	if w.measured {
		w.counts.Sent[m.Kind]++
	}
	w.network.carry(event{kind: arrives, Message: m})
}

// After implements swarm.Port.
func (w *World) After(d time.Duration, m swarm.Message) {
	if w.here == nowhere || d < 0 {
		w.must("a timer of %s at place %d", d, w.here)
	}
	m.From, m.To = w.here, w.here
	e := event{kind: wakes, Message: m}
	if z := w.zoneOf(w.here); z >= 0 {
		e.epoch = w.zones[z].epoch
	}
	w.events.Put(w.now.Add(d), e)
}

// Task implements swarm.Port.
func (w *World) Task(id swarm.TaskID) (swarm.Task, bool) { return w.tasks.known(id) }

// Told implements swarm.Port.
func (w *World) Told(node int32) {
	w.local(node)
	w.told[node] = w.free(node)
}

// Free implements swarm.Port.
func (w *World) Free(node int32) uint8 {
	w.local(node)
	return w.free(node)
}

// Hold implements swarm.Port.
func (w *World) Hold(node int32, class uint8) int8 {
	w.local(node)
	slot := w.c.Best(node, w.free(node), class)
	if slot >= 0 {
		w.busy[node] |= 1 << slot
		w.held[node] |= 1 << slot
	}
	return slot
}

// Release implements swarm.Port.
func (w *World) Release(node int32, slot int8) {
	w.local(node)
	if slot < 0 || w.held[node]&(1<<slot) == 0 {
		w.must("slice %d of node %d is not held", slot, node)
	}
	w.busy[node] &^= 1 << slot
	w.held[node] &^= 1 << slot
	if w.claimed(node, slot) {
		w.rigids.vacated(node, slot)
	}
}

// StartOn implements swarm.Port.
func (w *World) StartOn(node int32, slot int8, t swarm.TaskID) swarm.Outcome {
	w.local(node)
	if slot < 0 || w.held[node]&(1<<slot) == 0 {
		w.must("slice %d of node %d is not held", slot, node)
	}
	x, out := w.tasks.startable(t)
	if x == nil {
		return out
	}
	if w.c.Fits(node, x.Class)&(1<<slot) == 0 {
		w.must("task of class %d on slice %d of node %d, which is too small", x.Class, slot, node)
	}
	w.held[node] &^= 1 << slot
	w.tasks.land(x, node, slot)
	return swarm.Started
}

// Start implements swarm.Port.
func (w *World) Start(node int32, t swarm.TaskID) swarm.Outcome {
	w.local(node)
	x, out := w.tasks.startable(t)
	if x == nil {
		return out
	}
	slot := w.c.Best(node, w.free(node), x.Class)
	if slot < 0 {
		return swarm.Full
	}
	w.busy[node] |= 1 << slot
	w.tasks.land(x, node, slot)
	return swarm.Started
}
