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

// Arrive implements swarm.Mechanism.
func (m *mechanism) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for i := range tasks {
		e := m.create(&tasks[i])
		m.drawn(now, gate, e, m.loop.Begin(now, &e.Ticket))
	}
}

// atGate is what a gate hears.
func (m *mechanism) atGate(now quantity.Instant, gate int32, in swarm.Message) {
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
		if e.Phase == flow.Parked { // as a new ticket: what it has learned is forgotten
			e.Born = now
			m.drawn(now, gate, e, m.loop.Wake(now, &e.Ticket))
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
func (m *mechanism) drawn(now quantity.Instant, gate int32, e *ticket, next flow.Move) {
	if next.Act != flow.Draw {
		m.drop(e)
		return
	}
	z, ok := m.draw(now, gate, &e.Ticket)
	switch {
	case ok && e.home < 0:
		e.home = int32(z)
		m.port.Send(swarm.Message{Kind: adopt, To: m.c.ZoneAt(e.home), Task: e.task, X: e.id})
		if e.Kind == flow.Lasting {
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

func (e *ticket) due(now quantity.Instant) bool { return e.Deadline != 0 && e.Deadline <= now }

// draw is the next zone of a ticket.
func (m *mechanism) draw(now quantity.Instant, at int32, t *flow.Ticket) (flow.ZoneID, bool) {
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
		for i := range flow.ZoneID(len(m.zones)) {
			if g.splitter.Share(t.Class, i) > 0 && g.splitter.Digest(i).Room(t.Class) > g.splitter.Digest(z).Room(t.Class) {
				z = i
			}
		}
	case Uniform:
		s := prng.New(m.cfg.Seed, uint64(t.ID), uint64(t.Episode)<<8|uint64(t.Draws))
		z = flow.ZoneID(s.IntN(len(m.zones)))
	case Whole, Forgetful, Blind, FirstCome, Direct:
	}
	return z, true
}

// Digest implements swarm.Mechanism.
func (m *mechanism) Digest(now quantity.Instant, gate int32, d *swarm.Digest) {
	out := flow.Digest{Zone: flow.ZoneID(d.Zone), Alive: true, Version: uint64(d.Sent) + 2, At: d.Sent}
	free := uint32(0)
	for c := swarm.MaxClasses - 1; c >= 0; c-- {
		free += uint32(d.Free[c])
		out.Free[c], out.Demand[c] = free, uint32(d.Told[c])
	}
	m.gates[gate].splitter.Hear(now, &out)
}

// Expired implements swarm.Mechanism: tickets that are nowhere are dropped, the others end where they are.
func (m *mechanism) Expired(_ quantity.Instant, t swarm.Task) {
	if t.ID.Slot() >= len(m.of) {
		return
	}
	e := m.get(m.of[t.ID.Slot()])
	if e != nil && e.task == t.ID && (e.Phase == flow.Drawing || e.Phase == flow.Parked && !e.parked) {
		m.drop(e)
	}
}
