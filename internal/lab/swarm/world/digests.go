package world

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// digests are those under way: one of a zone goes to every gate.
type digests struct {
	*network
	// teller is the mechanism if it adds to digests.
	teller swarm.Teller
	flight []flight
	spare  []int32
}

type flight struct {
	swarm.Digest
	left int // gates that have yet to hear it
}

// begin starts every zone's period, each at its own time in it.
func (w *digests) begin() {
	if !w.o.Kind.Reports && !w.o.Kind.Digests {
		return
	}
	for n := range w.told {
		w.told[n] = w.all[n%w.c.PerZone]
		w.view[n] = w.told[n] // what a party knows of nodes that have told nothing: all is free
	}
	for z := range w.c.Zones {
		w.events.Put(quantity.Instant(int64(w.o.Period)*int64(z)/int64(w.c.Zones)), event{kind: ticks, index: int32(z)})
	}
}

// tick: every node of the zone that has changed since its last report reports to the zone.
func (w *digests) tick(z int32) {
	w.events.Put(w.now.Add(w.o.Period), event{kind: ticks, index: z})
	if w.zones[z].dead {
		return
	}
	first := z * int32(w.c.PerZone)
	for n := first; n < first+int32(w.c.PerZone); n++ {
		free := w.free(n)
		if free == w.told[n] {
			continue
		}
		w.told[n] = free
		if w.measured {
			w.counts.Reports++
		}
		w.carry(event{kind: reports, Message: swarm.Message{From: w.c.At(n), To: w.c.ZoneAt(z), A: n, B: int32(free)}})
	}
	if w.o.Kind.Digests {
		w.events.Put(w.now.Add(w.o.lag()), event{kind: tocks, index: z})
	}
}

// lag is how long a zone waits for its nodes' reports before it sends its digest.
func (o *Options) lag() time.Duration {
	return min(o.Period/2, o.Network.Delay+4*o.Network.Jitter+1)
}

func (w *digests) reported(node int32, free uint8) {
	z := w.c.Zone(node)
	if !w.enter(w.c.ZoneAt(z)) {
		return
	}
	w.view[node] = free
	w.m.Report(w.now, z, swarm.Report{Node: node, Free: free})
}

// tock: the zone sends what it has heard of its nodes to every gate.
func (w *digests) tock(z int32) {
	if !w.enter(w.c.ZoneAt(z)) {
		return
	}
	var i int32
	if n := len(w.spare); n > 0 {
		i, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		i = int32(len(w.flight))
		w.flight = append(w.flight, flight{})
	}
	f := &w.flight[i]
	*f = flight{Digest: swarm.Digest{Zone: z, Sent: w.now}}
	first := z * int32(w.c.PerZone)
	for n := first; n < first+int32(w.c.PerZone); n++ {
		slots := w.c.Slots(n)
		for free := w.view[n]; free != 0; free &= free - 1 {
			f.Free[slots[bits.TrailingZeros8(free)]]++
		}
	}
	if w.teller != nil && !w.teller.Tell(w.now, z, &f.Digest) {
		w.spare = append(w.spare, i)
		return
	}
	for g := range int32(w.o.Gates) {
		if w.measured {
			w.counts.Digests++
		}
		if w.carry(event{kind: digested, index: i, Message: swarm.Message{From: w.c.ZoneAt(z), To: w.c.GateAt(g), A: g}}) {
			f.left++
		}
	}
	if f.left == 0 {
		w.spare = append(w.spare, i)
	}
}

func (w *digests) deliver(i int32, to swarm.Place) {
	f := &w.flight[i]
	_, gate := w.c.Whose(to)
	w.here = to
	w.m.Digest(w.now, gate, &f.Digest)
	if f.left--; f.left == 0 {
		w.spare = append(w.spare, i)
	}
}
