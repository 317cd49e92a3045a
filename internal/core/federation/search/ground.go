package search

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Ground is where tickets of any home search: what a zone knows of its nodes, the tickets that are there, and what each of them waits for.
// It is not safe for concurrent use.
type Ground struct {
	cfg  *Config
	loop *flow.Search
	self protocol.Address
	zone flow.ZoneID
	home Host

	dir    *flow.Directory
	nodes  map[job.NodeID]flow.NodeID
	missed []uint8 // by node: probes in a row without a word from it
	guests map[key]*guest
	due    alarm.Heap[*guest]
	// resting are those of the guests that wait for room, news the classes of the largest free fragments that nodes have told of since the
	// last Tick.
	resting resting
	news    []flow.Class
	// spare guests have been forgotten and nobody knows them; found is room for what a ticket of the home here has found.
	spare []*guest
	found protocol.Finding
}

// Host is the home in the same place: what its own tickets find is not said in messages.
type Host interface {
	// Landed takes a place that was found, and keeps no pointer to it; Returned a search that is over without one.
	Landed(now quantity.Instant, id job.ID, f *protocol.Finding, out *protocol.Out)
	Returned(now quantity.Instant, id job.ID, e *protocol.Errand, out *protocol.Out)
	// Awaits reports whether a ticket of this home is under way, and is not an earlier search's that arrives late.
	Awaits(id job.ID, e *protocol.Errand) bool
	// Left: a ticket of this home has left for the gate.
	Left(now quantity.Instant, id job.ID, e *protocol.Errand)
}

// key of a ticket anywhere.
type key struct {
	home flow.ZoneID
	id   flow.TicketID
}

// guest is a ticket that searches here.
type guest struct {
	protocol.Errand
	job job.ID
	// slot of its alarm: it may hop again, or the node that it asked has not answered.
	slot int
	// rest is its place among those that rest, from 1; 0: it does not.
	rest int
}

// silentAfter is how many probes in a row a node leaves without an answer before it is asked no more, until it says something.
const silentAfter = 2

// NewGround is a zone's, of whose nodes nothing is known yet. since is later than any it had before: its digests are numbered from there.
func NewGround(cfg *Config, self protocol.Address, zone flow.ZoneID, home Host, since quantity.Instant) *Ground {
	nodes := cfg.Zones[zone].Nodes
	g := &Ground{
		cfg: cfg, loop: flow.NewSearch(&cfg.Flow), self: self, zone: zone, home: home, dir: flow.NewDirectory(&cfg.Flow, zone, len(nodes),
			uint64(max(0, since))),
		nodes: map[job.NodeID]flow.NodeID{}, missed: make([]uint8, len(nodes)), guests: map[key]*guest{},
	}
	for i, id := range nodes {
		g.nodes[id] = flow.NodeID(i)
	}
	return g
}

// Directory of the zone.
func (g *Ground) Directory() *flow.Directory { return g.dir }

// Knows reports whether a node is one of the zone's.
func (g *Ground) Knows(id job.NodeID) bool {
	_, known := g.nodes[id]
	return known
}

// Next is when something here waits for; Never if nothing does.
func (g *Ground) Next() quantity.Instant { return g.due.Next() }

// Hear records what a node reports as free. With the next Tick a resting ticket asks for it.
func (g *Ground) Hear(from job.NodeID, s *flow.Summary) {
	n, known := g.nodes[from]
	if !known {
		return
	}
	g.missed[n] = 0
	if !g.dir.Report(n, s) || !s.Usable {
		return
	}
	for c := len(s.Free) - 1; c >= 0; c-- {
		if s.Free[c] > 0 {
			g.news = append(g.news, flow.Class(c))
			return
		}
	}
}

// Forget says that a node was removed. One of its name that comes is a new one.
func (g *Ground) Forget(id job.NodeID) {
	if n, known := g.nodes[id]; known {
		g.missed[n] = 0
		g.dir.Forget(n)
	}
}

// Arrive handles a ticket that was drawn to this zone. One that is here already was sent twice.
func (g *Ground) Arrive(now quantity.Instant, id job.ID, e *protocol.Errand, out *protocol.Out) {
	k := key{e.Home, e.ID}
	if g.guests[k] != nil || e.Phase != flow.Drawing || int(e.Home) >= len(g.cfg.Zones) || int(e.Class) >= len(g.cfg.Flow.Classes) {
		return
	}
	if e.Home == g.zone && !g.home.Awaits(id, e) {
		return
	}
	x := g.guest()
	x.Errand, x.job = *e, id
	g.guests[k] = x
	g.act(now, x, g.loop.Arrive(now, &x.Ticket, g.dir), out)
}

// Probed handles a node's answer.
func (g *Ground) Probed(now quantity.Instant, from job.NodeID, r *protocol.Response, out *protocol.Out) {
	g.Hear(from, &r.Room)
	x := g.guests[key{r.Home, r.Ticket}]
	n, known := g.nodes[from]
	if x == nil || x.Phase != flow.Asking || x.Episode != r.Episode || x.Hops != r.Hop || !known || n != x.Node {
		return // it was given up, and what was granted lapses
	}
	if r.Place == nil {
		g.act(now, x, g.loop.Refused(now, &x.Ticket, g.dir), out)
		return
	}
	g.loop.Granted(&x.Ticket, g.dir)
	g.forget(x)
	id, here := x.job, x.Home == g.zone
	if here {
		g.found = protocol.Finding{Errand: x.Errand, Place: *r.Place}
	} else {
		g.send(out, protocol.Message{Kind: protocol.Landing, To: g.cfg.At(x.Home), Job: id,
			Body: &protocol.Finding{Errand: x.Errand, Place: *r.Place}})
	}
	*x = guest{}
	if g.spare = append(g.spare, x); here {
		g.home.Landed(now, id, &g.found, out)
	}
}

// guest is room for one.
func (g *Ground) guest() *guest {
	last := len(g.spare) - 1
	if last < 0 {
		return &guest{}
	}
	x := g.spare[last]
	g.spare = g.spare[:last]
	return x
}

// Tick does what is due: tickets that have rested hop, and nodes that have not answered count as having refused. For each node that has
// told of room since the last one, of those who rest and whom that serves the one who gives up first asks at once.
func (g *Ground) Tick(now quantity.Instant, out *protocol.Out) {
	var list []*guest
	for x := range g.due.Past(now) {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *guest) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Home, b.Home)) })
	for _, x := range list {
		if x.Phase == flow.Asking {
			if g.missed[x.Node]++; g.missed[x.Node] >= silentAfter {
				g.missed[x.Node] = 0
				g.dir.Silent(x.Node)
			}
			g.act(now, x, g.loop.Refused(now, &x.Ticket, g.dir), out)
		} else {
			g.act(now, x, g.loop.Next(now, &x.Ticket, g.dir), out)
		}
	}
	for _, c := range g.news {
		if x := g.resting.first(c); x != nil {
			x.Ticket.Next = now
			g.act(now, x, g.loop.Next(now, &x.Ticket, g.dir), out)
		}
	}
	g.news = g.news[:0]
}

// Take takes out a ticket of the home here, which is not to search any more; false if it is not here.
func (g *Ground) Take(id flow.TicketID) bool {
	x := g.guests[key{g.zone, id}]
	if x != nil {
		g.loop.Leave(&x.Ticket, g.dir)
		g.forget(x)
	}
	return x != nil
}

// Has says whether a ticket of the home here searches here.
func (g *Ground) Has(id flow.TicketID) bool { return g.guests[key{g.zone, id}] != nil }

// act does what the loop says.
func (g *Ground) act(now quantity.Instant, x *guest, next flow.Move, out *protocol.Out) {
	g.resting.drop(x)
	switch next.Act {
	case flow.Ask:
		g.arm(x, next.At)
		g.send(out, protocol.Message{
			Kind: protocol.Probe, To: protocol.Address{Role: protocol.Node, ID: string(g.cfg.Zones[g.zone].Nodes[next.Node])}, Job: x.job,
			Generation: x.Generation,
			Body: out.Inquiries.Keep(protocol.Inquiry{Probe: x.Probe(), Episode: x.Episode, Hop: x.Hops, Least: x.Least, Most: x.Most,
				Short: g.resting.any()}),
		})
	case flow.Rest:
		g.arm(x, next.At)
		g.resting.put(x)
	case flow.Draw:
		g.forget(x)
		if x.Home == g.zone {
			g.home.Left(now, x.job, &x.Errand)
		}
		g.send(out, protocol.Message{Kind: protocol.Redraw, To: g.cfg.Gates.Of(x.job), Job: x.job, Body: &x.Errand})
	case flow.Park, flow.Expire:
		g.forget(x)
		if x.Home == g.zone {
			g.home.Returned(now, x.job, &x.Errand, out)
			return
		}
		g.send(out, protocol.Message{Kind: protocol.Back, To: g.cfg.At(x.Home), Job: x.job, Body: &x.Errand})
	}
}

func (g *Ground) arm(x *guest, at quantity.Instant) { g.due.Set(&x.slot, x, at) }

func (g *Ground) forget(x *guest) {
	g.resting.drop(x)
	g.due.Set(&x.slot, x, quantity.Never)
	delete(g.guests, key{x.Home, x.ID})
}

func (g *Ground) send(out *protocol.Out, m protocol.Message) {
	m.From = g.self
	out.Effects = append(out.Effects, m)
}
