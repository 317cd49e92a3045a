package flow

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Directory is what one zone knows of its nodes and of the tickets that search in it. It is soft: a zone that starts again
// begins with nodes of which nothing is known, and each is known once it has said something. Not safe for concurrent use.
type Directory struct {
	cfg  Config
	zone ZoneID
	// hints and nodes are by NodeID. A hop reads hints alone, so that they lie together.
	hints []Hint
	nodes []Summary
	// free and pressure are sums over usable nodes, free by the fragments' own class; usable is how many there are.
	free     [MaxClasses]int64
	pressure int64
	usable   int64
	// demand counts the tickets that search here, by their own class; tickets all of them.
	demand  [MaxClasses]int64
	tickets int
	version uint64
}

// NewDirectory is a zone with a number of nodes of which nothing is known yet. The configuration must be valid.
// version is the number of its last digest before, 0 if there was none.
func NewDirectory(cfg Config, zone ZoneID, nodes int, version uint64) *Directory {
	return &Directory{cfg: cfg.WithDefaults(), zone: zone, hints: make([]Hint, nodes), nodes: make([]Summary, nodes), version: version}
}

// Zone is whose directory it is.
func (d *Directory) Zone() ZoneID { return d.zone }

// Nodes is how many there are.
func (d *Directory) Nodes() int { return len(d.nodes) }

// Tickets is how many search here.
func (d *Directory) Tickets() int { return d.tickets }

// Hint of a node.
func (d *Directory) Hint(n NodeID) Hint { return d.hints[n] }

// Report takes in what a node says of itself, and is false if something newer is known.
func (d *Directory) Report(n NodeID, s *Summary) bool {
	old := &d.nodes[n]
	if s.Version <= old.Version {
		return false
	}
	d.count(old, -1)
	*old = *s
	if !s.Usable {
		old.Free = Fragments{}
	}
	d.count(old, 1)
	d.hints[n] = hintOf(&old.Free)
	return true
}

// Silent marks a node as unusable until it says something, be it what it said last: nobody reaches it.
func (d *Directory) Silent(n NodeID) {
	old := &d.nodes[n]
	if !old.Usable {
		return
	}
	d.count(old, -1)
	old.Usable, old.Free = false, Fragments{}
	old.Version-- // so that the same summary again is news
	d.hints[n] = 0
}

func (d *Directory) count(s *Summary, sign int64) {
	if !s.Usable {
		return
	}
	for c, n := range s.Free {
		d.free[c] += sign * int64(n)
	}
	d.pressure += sign * int64(s.Pressure)
	d.usable += sign
}

// Digest is what the zone says of itself now, and takes a new version.
func (d *Directory) Digest(now quantity.Instant) Digest {
	d.version++
	out := Digest{Zone: d.zone, Alive: d.usable > 0, Version: d.version, At: now}
	if d.usable > 0 {
		out.Pressure = uint16((d.pressure + d.usable/2) / d.usable)
	}
	free, demand := int64(0), int64(0)
	for c := MaxClasses - 1; c >= 0; c-- {
		free, demand = free+d.free[c], demand+d.demand[c]
		out.Free[c], out.Demand[c] = uint32(free), uint32(demand)
	}
	return out
}

// admit counts a ticket that begins to search here; false if as many search here as may.
func (d *Directory) admit(t *Ticket) bool {
	if d.tickets >= d.cfg.ZoneTickets {
		return false
	}
	d.tickets++
	d.demand[t.Class]++
	return true
}

// leave takes out a ticket that was admitted.
func (d *Directory) leave(t *Ticket) {
	d.tickets--
	d.demand[t.Class]--
	if d.demand[t.Class] < 0 {
		invariant.Check(false, "flow: more tickets of class %d left zone %d than came", t.Class, d.zone)
	}
}

// pick is the node to ask next: the best by its hint of a few that the ticket has not asked before, none of them twice. Which
// few is drawn from the ticket's id and its hop, so it does not depend on what others do. ok is false if no node is usable.
//
// The filter of visited nodes has 64 bits, by node modulo 64: exact up to 64 nodes, and above that it leaves out some
// nodes that were not asked. When all have been asked it begins anew.
func (d *Directory) pick(t *Ticket) (best NodeID, ok bool) {
	n := len(d.hints)
	if n == 0 || d.usable == 0 {
		return 0, false
	}
	all := ^uint64(0)
	if n < 64 {
		all = 1<<n - 1
	}
	if t.Visited&all == all {
		t.Visited = 0
	}
	stream := prng.New(d.cfg.Seed, uint64(t.ID), forHop<<32|uint64(t.Episode)<<16|uint64(t.Hops))
	seen := t.Visited // and what this hop has looked at
	top := Hint(0)
	for looks := 0; seen&all != all && (looks < d.cfg.Choices || top.Level(t.Class) == 0 && looks < d.cfg.Choices+d.cfg.Look); looks++ {
		i := unseen(stream.Uint64(), n, seen)
		seen |= 1 << (i & 63)
		h := d.hints[i]
		switch {
		case h == 0 && !d.nodes[i].Usable:
		case !ok || better(h, top, t.Class):
			best, top, ok = NodeID(i), h, true
		}
	}
	if !ok { // all that it looked at are unusable
		i := stream.IntN(n)
		for !d.nodes[i].Usable {
			if i++; i == n {
				i = 0
			}
		}
		best = NodeID(i)
	}
	return best, true
}

// better says whether a hint is better for a class than another: more fragments that are large enough, and among equals less
// above, which is left for those who need it.
func better(h, than Hint, c Class) bool {
	if a, b := h.Level(c), than.Level(c); a != b {
		return a > b
	}
	return h.above(c) < than.above(c)
}

// unseen turns a random number into a node of n whose bit is not in seen, which leaves one out at least. It tries the number itself first, which is
// uniform, then a few more made of it, and at last the next node behind.
func unseen(r uint64, n int, seen uint64) int {
	for range 4 {
		hi, lo := bits.Mul64(r, uint64(n))
		if seen>>(hi&63)&1 == 0 {
			return int(hi)
		}
		r = lo // the next digit in base n
	}
	hi, _ := bits.Mul64(r, uint64(n))
	for i := int(hi); ; i++ {
		if i >= n {
			i = 0
		}
		if seen>>(i&63)&1 == 0 {
			return i
		}
	}
}
