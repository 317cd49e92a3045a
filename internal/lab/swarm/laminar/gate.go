package laminar

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// gate has the digests, and draws.
type gate struct {
	splitter *flow.Splitter
	rebuilt  quantity.Instant
}

// gates draw tickets to zones by what these say of themselves.
type gates struct {
	ground
	gates []gate
}

// newGates know what every zone has at the beginning.
func newGates(at ground, n int, z *zones) *gates {
	m := &gates{ground: at, gates: make([]gate, n)}
	for g := range m.gates {
		m.gates[g].splitter = flow.NewSplitter(at.cfg, at.c.Zones)
		for i := range z.zones {
			d := z.zones[i].nodes.Digest(0)
			m.gates[g].splitter.Hear(0, &d)
		}
		m.gates[g].splitter.Rebuild(0)
	}
	return m
}

// arrive makes a ticket for each task of a job.
func (m *gates) arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for i := range tasks {
		e := m.create(&tasks[i])
		m.drawn(now, gate, e, m.loop.Begin(now, &e.search))
	}
}

// hear handles a gate's message.
func (m *gates) hear(now quantity.Instant, gate int32, in swarm.Message) {
	e := m.get(in.X)
	if e == nil {
		return
	}
	switch in.Kind {
	case adopted:
		e.confirmed = true
	case again:
		m.drawn(now, gate, e, flow.Move{Act: flow.Draw})
	case renewed:
		m.port.After(m.cfg.Pace, swarm.Message{Kind: retries, X: e.id})
	case retries:
		if e.search.Phase == flow.Parked { // as a new ticket: what it has learned is forgotten
			e.search.Born = now
			m.drawn(now, gate, e, m.loop.Wake(now, &e.search))
		} else {
			m.drawn(now, gate, e, flow.Move{Act: flow.Draw})
		}
	case homeless:
		if !e.confirmed {
			m.port.Send(swarm.Message{Kind: adopt, To: m.c.ZoneAt(e.home), Task: e.task, X: e.id})
			m.port.After(2*m.cfg.Stale, swarm.Message{Kind: homeless, X: e.id})
		}
	}
}

// drawn draws a ticket to a zone: its home, if it has none yet.
func (m *gates) drawn(now quantity.Instant, gate int32, e *ticket, next flow.Move) {
	if next.Act != flow.Draw {
		m.drop(e)
		return
	}
	z, ok := m.draw(now, gate, &e.search)
	switch {
	case ok && e.home < 0:
		e.home = int32(z)
		m.port.Send(swarm.Message{Kind: adopt, To: m.c.ZoneAt(e.home), Task: e.task, X: e.id})
		if e.search.Kind == flow.Lasting {
			m.port.After(2*m.cfg.Stale, swarm.Message{Kind: homeless, X: e.id})
		}
	case ok:
		m.port.Send(swarm.Message{Kind: search, To: m.c.ZoneAt(int32(z)), Task: e.task, X: e.id})
	case e.due(now):
		m.drop(e)
	default: // no zone is alive
		m.port.After(m.cfg.Period, swarm.Message{Kind: retries, X: e.id})
	}
}

// draw is the next zone of a ticket.
func (m *gates) draw(now quantity.Instant, at int32, t *flow.Ticket) (flow.ZoneID, bool) {
	g := &m.gates[at]
	if now.Sub(g.rebuilt) >= m.cfg.Period {
		g.rebuilt = now
		g.splitter.Rebuild(now)
	}
	z, ok := g.splitter.Draw(t)
	if !ok {
		return 0, false
	}
	switch m.v {
	case Argmax:
		for i := range flow.ZoneID(m.c.Zones) {
			if g.splitter.Share(t.Class, i) > 0 && g.splitter.Digest(i).Room(t.Class) > g.splitter.Digest(z).Room(t.Class) {
				z = i
			}
		}
	case Uniform:
		s := prng.New(m.cfg.Seed, uint64(t.ID), uint64(t.Episode)<<8|uint64(t.Draws))
		z = flow.ZoneID(s.IntN(m.c.Zones))
	case Whole, Forgetful, Blind, FirstCome, Direct:
	}
	return z, true
}

// digest records a zone's digest.
func (m *gates) digest(now quantity.Instant, gate int32, d *swarm.Digest) {
	out := flow.Digest{Zone: flow.ZoneID(d.Zone), Alive: true, Version: uint64(d.Sent) + 2, At: d.Sent}
	free := uint32(0)
	for c := swarm.MaxClasses - 1; c >= 0; c-- {
		free += uint32(d.Free[c])
		out.Free[c], out.Demand[c] = free, uint32(d.Told[c])
	}
	m.gates[gate].splitter.Hear(now, &out)
}

// expired: tickets that are nowhere are dropped, the others end where they are.
func (m *gates) expired(t swarm.TaskID) {
	if e := m.ofTask(t); e != nil && e.task == t && (e.search.Phase == flow.Drawing || e.search.Phase == flow.Parked && !e.parked) {
		m.drop(e)
	}
}
