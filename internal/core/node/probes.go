package node

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// probes are the questions of tickets that lie at the node (mechanism laminar): those of one instant are decided together, by what they are worth, each for
// the smallest free slice that serves it. What is granted is a hold like any other. All of it is soft.
type probes struct {
	cfg     *search.Config
	arbiter *flow.Arbiter
	// phase of the period at which the node says what is free.
	zone flow.ZoneID
	// lying since an instant.
	lying []lying
	since quantity.Instant
	asked []flow.Probe
	// standing are the grants of tickets.
	standing map[ticket]*grant
	// said numbers what the node says of itself, within this boot. owes: it has refused somebody, or heard that somebody waits, when it had told free.
	said uint64
	owes bool
	told flow.Fragments
	// next is when slices that have changed are offered.
	next quantity.Instant
	gaps []protocol.Gap
	// rooms are what probes ask of the slices, by their place.
	rooms []room
}

// lying is a probe with who asks.
type lying struct {
	from       protocol.Address
	job        job.ID
	generation job.Generation
	*protocol.Inquiry
}

// ticket is one search of a job's ticket, as far as its losses go: after each it is another question.
type ticket struct {
	id    flow.TicketID
	home  flow.ZoneID
	epoch uint32
	churn uint8
}

func ticketOf(p *flow.Probe) ticket { return ticket{p.Ticket, p.Home, p.Epoch, p.Churn} }

func newProbes(cfg *search.Config, zone job.ZoneID) *probes {
	if cfg == nil {
		return nil
	}
	z, _ := cfg.Index(zone)
	return &probes{cfg: cfg, arbiter: flow.NewArbiter(&cfg.Flow), zone: z, standing: map[ticket]*grant{}}
}

// lie keeps a probe until all of this instant are there.
func (n *Node) lie(now quantity.Instant, in *protocol.Message) {
	if q, ok := in.Body.(*protocol.Inquiry); ok && n.probes != nil && int(q.Class) < len(n.probes.cfg.Flow.Classes) {
		n.probes.since = now
		n.probes.lying = append(n.probes.lying, lying{in.From, in.Job, in.Generation, q})
	}
}

// decide answers what lies here of an instant that is over, or as the timer says that no more of this one comes.
func (n *Node) decide(now quantity.Instant, over bool, out *protocol.Out) {
	p := n.probes
	if p == nil || len(p.lying) == 0 || !over && p.since >= now {
		return
	}
	p.asked = p.asked[:0]
	for i := range p.lying {
		p.asked = append(p.asked, p.lying[i].Probe)
	}
	free := n.fragments(now)
	for _, i := range p.arbiter.Order(now, &free, p.asked) {
		l := &p.lying[i]
		r := out.Response(protocol.Response{Ticket: l.Ticket, Home: l.Home, Episode: l.Episode, Hop: l.Hop})
		g := p.standing[ticketOf(&l.Probe)]
		if g == nil {
			if g = n.grantTo(now, l); g != nil && n.host.Counted() { // the others bear less
				n.bear(now)
				free = n.fragments(now)
			} else if g != nil {
				free = n.without(free, g, now)
			}
		}
		if g != nil {
			r.Place = out.Place(protocol.Place{Token: g.token, Node: n.cfg.ID, Slice: n.record(g.slice).bearing(g.peak.Mean), Start: g.start, End: g.end, Expiry: g.expiry})
		}
		p.owes = p.owes || g == nil || l.Short
		r.Room = n.says(free)
		n.send(out, protocol.Message{Kind: protocol.Probed, To: l.from, Job: l.job, Body: r})
	}
	p.told = free
	clear(p.lying)
	p.lying = p.lying[:0]
}

// grantTo holds the smallest free slice that serves a probe, for as long as it could use it, and as long as its home may take to redeem it; nil if there
// is none.
func (n *Node) grantTo(now quantity.Instant, l *lying) *grant {
	if !job.ValidID(l.job) || n.outlived(&protocol.Message{Job: l.job, Generation: l.generation}) || l.Least <= 0 || l.Most < l.Least {
		return nil
	}
	var best *slice
	var least quantity.Amount
	var until quantity.Instant
	for i, s := range n.slices {
		r := n.roomAt(now, i)
		if best != nil && r.capacity >= least || r.capacity < l.Demand || !r.free {
			continue
		}
		if end := r.until; !s.time.Full() && (l.Least == protocol.NoEnd && end == quantity.Never || l.Least != protocol.NoEnd && end.Sub(now)-n.cfg.GrantTTL >= l.Least) {
			best, least, until = s, r.capacity, end
		}
	}
	if best == nil {
		return nil
	}
	g := n.hold(now, grant{from: l.from, job: l.job, slice: best.id, start: now, end: min(until, now.Add(l.Most).Add(n.cfg.GrantTTL)), ticket: ticketOf(&l.Probe), searched: true,
		peak: trp.Peak{Mean: least}}, n.cfg.GrantTTL) // its home cuts the piece that fits
	n.probes.standing[g.ticket] = g
	return g
}

// bearing is what is said of a slice that is held with so much of the host's memory.
func (s *slice) bearing(held quantity.Amount) protocol.Slice {
	d := s.desc
	if d.Host > 0 {
		d.Bears = held
	}
	return d
}

// freeNow is until when a slice is free, if it is now.
func (n *Node) freeNow(now quantity.Instant, s *slice) (until quantity.Instant, free bool) {
	if _, usable := n.usable(s); !usable {
		return 0, false
	}
	n.probes.gaps, _ = s.time.Gaps(now, 1, n.cfg.MinGap, n.probes.gaps[:0])
	if len(n.probes.gaps) == 0 || n.probes.gaps[0].Start > now {
		return 0, false
	}
	return n.probes.gaps[0].End, true
}

// fragments are the slices that are free now, by class.
func (n *Node) fragments(now quantity.Instant) (f flow.Fragments) {
	for i := range n.slices {
		if r := n.roomAt(now, i); r.free && r.holds && f[r.class] < 255 {
			f[r.class]++
		}
	}
	return f
}

// without are the fragments that are left of those that were free, once a slice of them is held.
func (n *Node) without(f flow.Fragments, g *grant, now quantity.Instant) flow.Fragments {
	class, counted := n.probes.cfg.Flow.Classes.Holds(g.peak.Mean)
	if !counted {
		return f
	}
	if f[class] == 255 { // or more
		return n.fragments(now)
	}
	f[class]--
	return f
}

// says is what the node says of itself, with what is free now.
func (n *Node) says(free flow.Fragments) flow.Summary {
	n.probes.said++
	return flow.Summary{Free: free, Version: uint64(n.epoch)<<40 | n.probes.said, Usable: n.confirmed && n.ailing == "", Pressure: n.memory.share}
}

// mend tells the zone of room that somebody was refused or waits for, at once and once.
func (n *Node) mend(now quantity.Instant, out *protocol.Out) {
	p := n.probes
	if p == nil || !p.owes || n.unshown.Len() == 0 {
		return
	}
	free, more := n.fragments(now), false
	for c := range free {
		more = more || free[c] > p.told[c]
	}
	if p.told = free; more {
		p.owes = false
		room := n.says(free)
		n.send(out, protocol.Message{Kind: protocol.Room, To: protocol.Address{Role: protocol.Zone, ID: string(n.cfg.Zone)}, Body: &room})
	}
}

// letGo gives up a hold that is of no use to its home.
func (n *Node) letGo(in *protocol.Message) {
	if i, found := n.findGrant(in.Token); found && n.grants[i].job == in.Job {
		n.dropGrant(in.Token)
	}
}

// offersAt is when slices that have changed are offered: with the next period where tickets search, else at once.
func (n *Node) offersAt(now quantity.Instant) quantity.Instant {
	p := n.probes
	if p == nil || n.prompt {
		return now
	}
	if next := search.Beat(now-1, p.cfg.Flow.Period, p.cfg.Phase(p.zone)); p.next == 0 || next < p.next {
		p.next = next
	}
	return p.next
}
