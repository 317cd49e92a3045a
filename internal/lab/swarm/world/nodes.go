package world

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/invariant"
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
	// By node: told is its free slices as last reported, view as its zone knows them.
	told, view []uint8
	zones      []zone
	c          *swarm.Cluster
}

func newNodes(c *swarm.Cluster) nodes {
	n := c.Nodes()
	out := nodes{rigid: make([]uint8, n), busy: make([]uint8, n), held: make([]uint8, n), told: make([]uint8, n), view: make([]uint8, n),
		all: make([]uint8, c.PerZone), zones: make([]zone, c.Zones), c: c}
	for _, l := range c.Layouts {
		out.stride = max(out.stride, int32(len(l)))
	}
	out.on = make([]swarm.TaskID, int32(n)*out.stride)
	for i := range out.all {
		out.all[i] = c.All(int32(i))
	}
	for z := range out.zones {
		out.zones[z].leftover = out.slotsOf(int32(z))
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
func (w *nodes) settle(z int32, now quantity.Instant) *zone {
	x := &w.zones[z]
	d := int64(now - x.since)
	x.leftoverTime += d * x.leftover
	x.usedTime += d * x.used
	x.since = now
	return x
}

// slotsOf is how many slices a zone has that rigid work has not claimed; where nothing runs, that is the leftover.
func (w *nodes) slotsOf(z int32) (n int64) {
	for i, all := range w.all {
		n += int64(bits.OnesCount8(all &^ w.rigid[int(z)*w.c.PerZone+i]))
	}
	return n
}

func (w *nodes) free(node int32) uint8 {
	if w.zones[w.c.Zone(node)].dead {
		return 0
	}
	return w.all[int(node)%w.c.PerZone] &^ (w.rigid[node] | w.busy[node])
}

// claimed reports whether a slice is to go to rigid work.
func (w *nodes) claimed(node int32, slot int8) bool { return w.rigid[node]&(1<<slot) != 0 }

// find is a slice of a class in a zone that nobody has claimed, a free one if there is one.
func (w *nodes) find(z, begin int32, class uint8) (node int32, slot int8) {
	perZone := int32(w.c.PerZone)
	for _, busy := range [2]bool{false, true} {
		for k := range perZone {
			node = z*perZone + (begin+k)%perZone
			open := w.c.Exact(node, class) &^ w.rigid[node]
			if !busy {
				open &^= w.busy[node]
			}
			if open != 0 {
				return node, int8(bits.TrailingZeros8(open))
			}
		}
	}
	invariant.Check(false, "rigid work finds no slice of class %d in zone %d", class, z)
	return 0, 0
}

// room is the smallest free slice of a zone that is large enough, slot -1 if there is none.
func (w *nodes) room(z, begin int32, class uint8) (node int32, slot int8) {
	for ; int(class) < len(w.c.Classes); class++ {
		for k := range int32(w.c.PerZone) {
			node = z*int32(w.c.PerZone) + (begin+k)%int32(w.c.PerZone)
			if open := w.free(node) & w.c.Exact(node, class); open != 0 {
				return node, int8(bits.TrailingZeros8(open))
			}
		}
	}
	return 0, -1
}
