package world

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// nodes is the truth about every slice: sets of bits by node. free = all, not rigid, not busy.
type nodes struct {
	// rigid: claimed by rigid work. busy: held or running a task. held, within busy: no task yet.
	rigid, busy, held []uint8
	all               []uint8 // by node of a zone
	// on is the task on each slice, stride slices a node.
	on     []swarm.TaskID
	stride int32
	// told is by node the set of free slices of its last report, view what the zone has heard.
	told, view []uint8
}

func newNodes(c *swarm.Cluster) nodes {
	n := c.Nodes()
	out := nodes{rigid: make([]uint8, n), busy: make([]uint8, n), held: make([]uint8, n), told: make([]uint8, n), view: make([]uint8, n),
		all: make([]uint8, c.PerZone)}
	for _, l := range c.Layouts {
		out.stride = max(out.stride, int32(len(l)))
	}
	out.on = make([]swarm.TaskID, int32(n)*out.stride)
	for i := range out.all {
		out.all[i] = c.All(int32(i))
	}
	return out
}

// zone is what is true of one, and what was measured there.
type zone struct {
	dead, cut bool
	// epoch counts its lives.
	epoch uint32
	// leftover slices are not held by rigid work, though it may have claimed them, and used ones run a task; none of a dead zone. Since an
	// instant, up to which the integrals (slice-nanoseconds) go.
	leftover, used         int64
	since                  quantity.Instant
	leftoverTime, usedTime int64
}

// settle brings a zone's integrals up to now; before every change of leftover or used.
func (w *World) settle(z int32) *zone {
	x := &w.zones[z]
	d := int64(w.now - x.since)
	x.leftoverTime += d * x.leftover
	x.usedTime += d * x.used
	x.since = w.now
	return x
}

// slotsOf is how many slices a zone has that rigid work has not claimed; where nothing runs, that is the leftover.
func (w *World) slotsOf(z int32) (n int64) {
	for i, all := range w.all {
		n += int64(bits.OnesCount8(all &^ w.rigid[int(z)*w.c.PerZone+i]))
	}
	return n
}

func (w *World) free(node int32) uint8 {
	if w.zones[w.c.Zone(node)].dead {
		return 0
	}
	return w.all[int(node)%w.c.PerZone] &^ (w.rigid[node] | w.busy[node])
}

// local stops a call that is not made at the node.
func (w *World) local(node int32) {
	if w.here != w.c.At(node) && !w.o.Kind.Omniscient {
		w.must("node %d is not here: the call is made at place %d", node, w.here)
	}
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
		w.vacated(node, slot)
	}
}

// StartOn implements swarm.Port.
func (w *World) StartOn(node int32, slot int8, t swarm.TaskID) swarm.Outcome {
	w.local(node)
	if slot < 0 || w.held[node]&(1<<slot) == 0 {
		w.must("slice %d of node %d is not held", slot, node)
	}
	x, out := w.startable(t)
	if x == nil {
		return out
	}
	if w.c.Fits(node, x.Class)&(1<<slot) == 0 {
		w.must("task of class %d on slice %d of node %d, which is too small", x.Class, slot, node)
	}
	w.held[node] &^= 1 << slot
	w.land(x, node, slot)
	return swarm.Started
}

// Start implements swarm.Port.
func (w *World) Start(node int32, t swarm.TaskID) swarm.Outcome {
	w.local(node)
	x, out := w.startable(t)
	if x == nil {
		return out
	}
	slot := w.c.Best(node, w.free(node), x.Class)
	if slot < 0 {
		return swarm.Full
	}
	w.busy[node] |= 1 << slot
	w.land(x, node, slot)
	return swarm.Started
}
