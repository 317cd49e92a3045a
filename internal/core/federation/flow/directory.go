package flow

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Directory is what one zone knows of its nodes and of the tickets that search in it. Soft: a restarted zone knows nothing of its nodes,
// until each has reported. Not safe for concurrent use.
type Directory struct {
	cfg *Config
	// sets of nodes, words of 64 each: for each class those whose hint shows a fragment of just the class, behind them those that show one
	// that is large enough; and last all usable ones. A hop reads these and the hints of two nodes.
	sets  []uint64
	words int
	// hints and nodes are by NodeID.
	hints []Hint
	// usable nodes, tickets that search here, and demand: the tickets by their own class.
	usable, tickets int
	demand          [MaxClasses]int32
	zone            ZoneID
	nodes           []Summary
	// free and pressure are sums over usable nodes, free by the fragments' own class.
	free     [MaxClasses]int32
	pressure int64
	version  uint64
	// moved: something that a digest says may have changed since the last one.
	moved bool
}

// NewDirectory is a zone with this number of unknown nodes. The configuration must be valid, and never changes. version is the number of
// its last digest before, 0 if there was none.
func NewDirectory(cfg *Config, zone ZoneID, nodes int, version uint64) *Directory {
	words := (nodes + 63) / 64
	return &Directory{cfg: cfg, zone: zone, hints: make([]Hint, nodes), nodes: make([]Summary, nodes), version: version,
		sets: make([]uint64, words*(2*MaxClasses+1)), words: words}
}

// fit, room and up are parts of sets.
func (d *Directory) fit(c Class) []uint64 { return d.sets[2*int(c)*d.words:][:d.words] }

func (d *Directory) room(c Class) []uint64 { return d.sets[(2*int(c)+1)*d.words:][:d.words] }

func (d *Directory) up() []uint64 { return d.sets[2*MaxClasses*d.words:] }

// Tickets is how many search here.
func (d *Directory) Tickets() int { return d.tickets }

// Moved reports whether the next digest may differ from the last one.
func (d *Directory) Moved() bool { return d.moved }

// Report records a node's summary of itself; false if a newer one is known.
func (d *Directory) Report(n NodeID, s *Summary) bool {
	old := &d.nodes[n]
	if s.Version <= old.Version {
		return false
	}
	d.moved = true
	d.count(old, -1)
	*old = *s
	if !s.Usable {
		old.Free = Fragments{}
	}
	d.count(old, 1)
	d.note(n)
	return true
}

// Silent marks a node as unusable until it reports again, even the same: it can't be reached.
func (d *Directory) Silent(n NodeID) {
	old := &d.nodes[n]
	if !old.Usable {
		return
	}
	d.moved = true
	d.count(old, -1)
	old.Usable, old.Free = false, Fragments{}
	old.Version-- // so that the same summary again is news
	d.note(n)
}

// Forget makes a node one of which nothing is known.
func (d *Directory) Forget(n NodeID) {
	d.moved = true
	d.count(&d.nodes[n], -1)
	d.nodes[n] = Summary{}
	d.note(n)
}

// Fetch prefetches what a hop of a class reads, and changes nothing. With several tickets it is called for each of them first, so that the
// processor loads their cache lines in parallel, not one hop after the other. The result has no meaning.
func (d *Directory) Fetch(c Class) uint64 {
	if int(c) >= MaxClasses || len(d.hints) == 0 {
		return 0
	}
	sum := d.fit(c)[0] ^ d.up()[0] ^ uint64(d.demand[c]) ^ uint64(d.free[c]) ^ uint64(d.pressure)
	for i := 0; i < len(d.hints); i += 32 { // two bytes each
		sum ^= uint64(d.hints[i])
	}
	return sum
}

// FetchNode hashes what a node's answer changes.
func (d *Directory) FetchNode(n NodeID) uint64 { return d.nodes[n].Version }

// note remembers what is known of a node now for hops to come.
func (d *Directory) note(n NodeID) {
	word, bit := int(n>>6), uint64(1)<<(n&63)
	put(d.up(), word, bit, d.nodes[n].Usable)
	hint := hintOf(&d.nodes[n].Free)
	if hint == d.hints[n] {
		return
	}
	d.hints[n] = hint
	for c := range Class(len(d.cfg.Classes)) {
		put(d.fit(c), word, bit, hint.exact(c))
		put(d.room(c), word, bit, hint.Level(c) > 0)
	}
}

// put a bit into a word of a set, or take it out.
func put(set []uint64, word int, bit uint64, in bool) {
	if set[word] &^= bit; in {
		set[word] |= bit
	}
}

func (d *Directory) count(s *Summary, sign int32) {
	if !s.Usable {
		return
	}
	for c, n := range s.Free {
		d.free[c] += sign * int32(n)
	}
	d.pressure += int64(sign) * int64(s.Pressure)
	d.usable += int(sign)
}

// Digest is what the zone says of itself now, and takes a new version.
func (d *Directory) Digest(now quantity.Instant) Digest {
	d.version++
	d.moved = false
	return d.Now(now)
}

// Now is the same for people, under the version of the last one.
func (d *Directory) Now(now quantity.Instant) Digest {
	out := Digest{Zone: d.zone, Alive: d.usable > 0, Version: d.version, At: now}
	if d.usable > 0 {
		out.Pressure = uint16((d.pressure + int64(d.usable)/2) / int64(d.usable))
	}
	free, demand := int32(0), int32(0)
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
	d.moved = true
	d.tickets++
	d.demand[t.Class]++
	return true
}

// leave takes out a ticket that was admitted.
func (d *Directory) leave(t *Ticket) {
	d.moved = true
	d.tickets--
	d.demand[t.Class]--
	if d.demand[t.Class] < 0 {
		invariant.Check(false, "flow: more tickets of class %d left zone %d than came", t.Class, d.zone)
	}
}

// pick is the node to ask next: the better by its hint of two that the ticket has not asked. They are drawn from those that show a
// fragment of just its class; if there is none, from those that show one that is large enough; else from all that are usable, since hints
// are old. Which two depends on the ticket and its hop, and on nothing that other tickets draw. ok is false if no node is usable.
//
// The filter of visited nodes has 64 bits, by node modulo 64: exact up to 64 nodes, and above that it leaves out some
// nodes that were not asked. When all usable ones have been asked it is cleared.
func (d *Directory) pick(t *Ticket) (best NodeID, ok bool) {
	if d.usable == 0 || int(t.Class) >= len(d.cfg.Classes) {
		return 0, false
	}
	for _, among := range [...][]uint64{d.fit(t.Class), d.room(t.Class), d.up()} {
		if n := count(among, t.Visited); n > 0 {
			return d.better(t, among, n), true
		}
	}
	t.Visited = 0
	return d.pick(t)
}

// shows says whether the hint of the node that pick would take shows room: of one that was not visited yet, or of any when all have been.
func (d *Directory) shows(t *Ticket) bool {
	if int(t.Class) >= len(d.cfg.Classes) {
		return false
	}
	visited := t.Visited
	if count(d.up(), visited) == 0 {
		visited = 0
	}
	return count(d.room(t.Class), visited) > 0
}

// better of two random nodes among a set's n unvisited.
func (d *Directory) better(t *Ticket, among []uint64, n int) NodeID {
	stream := prng.New(d.cfg.Seed, uint64(t.ID), forHop<<32|uint64(t.Episode)<<16|uint64(t.Hops))
	i := stream.IntN(n)
	a := nth(among, t.Visited, i)
	if n == 1 {
		return a
	}
	k := stream.IntN(n - 1)
	if k >= i {
		k++
	}
	if b := nth(among, t.Visited, k); d.hints[b].Level(t.Class) > d.hints[a].Level(t.Class) {
		return b
	}
	return a
}

// count is how many nodes of a set were not visited.
func count(set []uint64, visited uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w &^ visited)
	}
	return n
}

// nth of the nodes of a set that were not visited, from 0; there must be more than i.
func nth(set []uint64, visited uint64, i int) NodeID {
	for k, w := range set {
		w &^= visited
		if n := bits.OnesCount64(w); i >= n {
			i -= n
			continue
		}
		for ; i > 0; i-- {
			w &= w - 1
		}
		return NodeID(k<<6 + bits.TrailingZeros64(w))
	}
	panic("flow: there are fewer nodes than were counted")
}
