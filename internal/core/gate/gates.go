package gate

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// With several gates the first owns the settings of queues, and tells them to every zone and to the other gates, which keep a copy. A job belongs to
// the gate of its name.

// listeners are how many the gate tells the settings of queues: all zones, then the other gates.
func (c *Config) listeners() int {
	switch {
	case len(c.Gates) == 0:
		return len(c.Zones)
	case c.Gates[0] != c.ID:
		return 0
	}
	return len(c.Zones) + len(c.Gates) - 1
}

// listener is who is told, by its place.
func (g *Gate) listener(i int) protocol.Address {
	if n := len(g.cfg.Zones); i >= n {
		return protocol.Address{Role: protocol.Gate, ID: string(g.cfg.Gates[i-n+1])}
	}
	return g.zone(g.cfg.Zones[i].ID)
}

// listens is the place of somebody who is told, -1 if it has none.
func (g *Gate) listens(a protocol.Address) int {
	if a.Role == protocol.Zone {
		return g.zoneAt(job.ZoneID(a.ID))
	}
	if i := slices.Index(g.cfg.Gates, job.GateID(a.ID)); i > 0 {
		return len(g.cfg.Zones) + i - 1
	}
	return -1
}

// queueChanged takes in what somebody has of a queue, and of the first gate what everybody is to have.
func (g *Gate) queueChanged(now quantity.Instant, in *protocol.Message, has *protocol.Queue, out *protocol.Out) {
	i, found := g.findQueue(has.Name)
	if first := g.cfg.Gates.First(); g.self == first {
		if found {
			g.settled(g.queues[i], in, has)
		}
		return
	} else if in.From != first {
		return // it has been told by the first
	}
	if !found || *g.queues[i].Queue != *has {
		g.fact(out, protocol.Fact{Kind: protocol.QueueSet, Queue: has})
		g.settle(now, out)
	}
	g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Body: has})
}

// part is this gate's share of a number that all gates share: as of a cap over zones, the shares add up to it.
func (g *Gate) part(n int) int {
	if len(g.cfg.Gates) < 2 {
		return n
	}
	return share(n, slices.Index(g.cfg.Gates, g.cfg.ID), len(g.cfg.Gates))
}
