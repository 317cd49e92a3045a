// Package tickets decides probes at a node (mechanism laminar): those of one instant together, by what they are worth, each for the
// smallest free slice that serves it. What is granted is a hold like any other, and the same question has the same answer until it ends.
// Soft.
package tickets

import (
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/memory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Config is how tickets are answered. Search must be set.
type Config struct {
	Search *search.Config
	Zone   job.ZoneID
	// TTL is how long a grant stands, MinGap the shortest gap that is one.
	TTL, MinGap time.Duration
}

// Parts of the node that answers depend on.
type Parts struct {
	Record    *record.Recorder
	Inventory *inventory.Inventory
	Holds     *holds.Holds
	Leases    *leases.Leases
	Memory    *memory.Host
	// Share of the host's memory that is used, in parts per thousand.
	Share func() uint16
}

// Tickets holds the tickets that ask one node. A nil one holds none.
type Tickets struct {
	cfg     Config
	parts   Parts
	arbiter *flow.Arbiter
	phase   time.Duration // of the period at which the node says what is free
	free    free
	// lying since an instant.
	lying []probe
	since quantity.Instant
	asked []flow.Probe
	// said numbers the node's own summaries, within this boot. owes: it has refused a probe, or learned that a ticket waits, after its last
	// report of free slices.
	said uint64
	owes bool
	told flow.Fragments
	// next is when slices that have changed are offered.
	next quantity.Instant
}

// probe is a question with who asks.
type probe struct {
	from       protocol.Address
	job        job.ID
	generation job.Generation
	*protocol.Inquiry
}

func (p *probe) question() holds.Question {
	return holds.Question{Search: true, Ask: uint64(p.Ticket), Home: uint32(p.Home), Epoch: p.Epoch, Losses: p.Churn}
}

// New returns the tickets of a node, with none waiting.
func New(c Config, of Parts) *Tickets {
	z, _ := c.Search.Index(c.Zone)
	return &Tickets{
		cfg: c, parts: of, arbiter: flow.NewArbiter(&c.Search.Flow), phase: c.Search.Phase(z),
		free: free{inventory: of.Inventory, classes: c.Search.Flow.Classes, minGap: c.MinGap},
	}
}

// Lie keeps a probe until all of this instant are there.
func (t *Tickets) Lie(now quantity.Instant, in *protocol.Message) {
	if t == nil {
		return
	}
	if q, ok := in.Body.(*protocol.Inquiry); ok && int(q.Class) < len(t.cfg.Search.Flow.Classes) {
		t.since = now
		t.lying = append(t.lying, probe{in.From, in.Job, in.Generation, q})
	}
}

// Decide answers the probes of an instant that is over, or whose timer says that no more of them come.
func (t *Tickets) Decide(now quantity.Instant, over bool, out *protocol.Out) {
	if t == nil || len(t.lying) == 0 || !over && t.since >= now {
		return
	}
	t.asked = t.asked[:0]
	for i := range t.lying {
		t.asked = append(t.asked, t.lying[i].Probe)
	}
	free := t.free.count(now)
	for _, i := range t.arbiter.Order(now, &free, t.asked) {
		p := &t.lying[i]
		r := out.Responses.Keep(protocol.Response{Ticket: p.Ticket, Home: p.Home, Episode: p.Episode, Hop: p.Hop})
		h, granted := t.parts.Holds.Answer(p.question())
		if !granted {
			if h, granted = t.grant(now, p); granted {
				free = t.without(free, &h, now)
			}
		}
		if granted {
			s := t.parts.Inventory.Record(h.Slice)
			r.Place = out.Places.Keep(protocol.Place{
				Token: h.Token, Node: t.parts.Record.Node(), Slice: s.Bearing(h.Peak.Mean), Start: h.Start, End: h.End, Expiry: h.Expiry,
			})
		}
		t.owes = t.owes || !granted || p.Short
		r.Room = t.says(free)
		t.parts.Record.Send(out, protocol.Message{Kind: protocol.Probed, To: p.from, Job: p.job, Body: r})
	}
	t.told = free
	clear(t.lying)
	t.lying = t.lying[:0]
}

// grant holds the smallest free slice that serves a probe, for as long as it could use it, and as long as its home may take to redeem it,
// if there is one.
func (t *Tickets) grant(now quantity.Instant, p *probe) (h holds.Hold, granted bool) {
	if !job.ValidID(p.job) || t.parts.Leases.Outlived(p.job, p.generation) || p.Least <= 0 || p.Most < p.Least {
		return h, false
	}
	var best *inventory.Slice
	var least quantity.Amount
	var until quantity.Instant
	for i, s := range t.parts.Inventory.All() {
		r := t.free.at(now, i)
		if best != nil && r.capacity >= least || r.capacity < p.Demand || !r.free || s.Full() {
			continue
		}
		if p.Least == protocol.NoEnd && r.until == quantity.Never || p.Least != protocol.NoEnd && r.until.Sub(now)-t.cfg.TTL >= p.Least {
			best, least, until = s, r.capacity, r.until
		}
	}
	if best == nil {
		return h, false
	}
	return t.parts.Holds.Make(now, holds.Hold{
		Asked: p.question(), Job: p.job, Slice: best.ID(), Start: now, End: min(until, now.Add(p.Most).Add(t.cfg.TTL)),
		Peak: trp.Peak{Mean: least}, // its home cuts the piece that fits
	}, t.cfg.TTL), true
}

// without are the fragments that are left of those that were free, once a slice of them is held.
func (t *Tickets) without(f flow.Fragments, h *holds.Hold, now quantity.Instant) flow.Fragments {
	if t.parts.Memory.Counted() { // the others bear less
		t.parts.Memory.Bear(now)
		return t.free.count(now)
	}
	class, counted := t.cfg.Search.Flow.Classes.Holds(h.Peak.Mean)
	if !counted {
		return f
	}
	if f[class] == 255 { // or more
		return t.free.count(now)
	}
	f[class]--
	return f
}

// says is the node's summary of itself, with what is free now.
func (t *Tickets) says(free flow.Fragments) flow.Summary {
	t.said++
	i := t.parts.Inventory
	return flow.Summary{
		Free: free, Version: uint64(t.parts.Holds.Epoch())<<40 | t.said, Usable: i.Confirmed() && i.Trouble() == "",
		Pressure: t.parts.Share(),
	}
}

// Room is what the node says of itself with the offers that follow; nil where no tickets search.
func (t *Tickets) Room(now quantity.Instant) *flow.Summary {
	if t == nil {
		return nil
	}
	said := t.says(t.free.count(now))
	t.next = 0
	return &said
}

// Mend tells the zone of room that somebody was refused or waits for, at once and once.
func (t *Tickets) Mend(now quantity.Instant, out *protocol.Out) {
	if t == nil || !t.owes || t.parts.Inventory.Changed() == 0 {
		return
	}
	free, more := t.free.count(now), false
	for c := range free {
		more = more || free[c] > t.told[c]
	}
	if t.told = free; more {
		t.owes = false
		room := t.says(free)
		t.parts.Record.Send(out, protocol.Message{Kind: protocol.Room, To: protocol.Address{Role: protocol.Zone, ID: string(t.cfg.Zone)},
			Body: &room})
	}
}

// OffersAt is when slices that have changed are offered: with the next period where tickets search, else at once.
func (t *Tickets) OffersAt(now quantity.Instant) quantity.Instant {
	if t == nil {
		return now
	}
	if next := search.Beat(now-1, t.cfg.Search.Flow.Period, t.phase); t.next == 0 || next < t.next {
		t.next = next
	}
	return t.next
}

// Next is when anything is to be done; now, if probes lie here.
func (t *Tickets) Next(now quantity.Instant) quantity.Instant {
	switch {
	case t == nil:
		return quantity.Never
	case len(t.lying) > 0:
		return now
	case t.next == 0:
		return quantity.Never
	}
	return t.next
}
