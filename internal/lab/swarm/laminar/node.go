package laminar

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// nodes decide, each alone, about the probes that come to it. Invariant: a slice is held for one grant at a time.
type nodes struct {
	ground
	// The arbiter, and by slice the number of its last hold, which is odd while it is open, and of the last that was started.
	arbiter *flow.Arbiter
	holds   []uint32
	started []uint32
	on      []swarm.TaskID // of Direct: the last that was started
	// owes is by node whether it has refused somebody since it last said what is free.
	owes    []bool
	lying   []lying
	probes  []flow.Probe
	senders []swarm.Message
}

func newNodes(at ground) *nodes {
	n := at.c.Nodes()
	m := &nodes{
		ground: at, arbiter: flow.NewArbiter(at.cfg), holds: make([]uint32, n*swarm.MaxSlots), started: make([]uint32, n*swarm.MaxSlots),
		owes: make([]bool, n),
	}
	if at.v == Direct {
		m.on = make([]swarm.TaskID, n*swarm.MaxSlots)
	}
	return m
}

// lying is a probe that lies at a node in this instant.
type lying struct {
	node int32
	swarm.Message
}

// hear handles a node's message.
func (m *nodes) hear(now quantity.Instant, node int32, in swarm.Message) {
	switch in.Kind {
	case probe:
		m.lie(now, node, in)
	case decides:
		m.decide(now, node)
	case lapses:
		if hold := &m.holds[int(node)*swarm.MaxSlots+int(in.A)]; *hold == uint32(in.B) {
			*hold++
			m.port.Release(node, int8(in.A))
		}
	case redeem:
		yes := int32(0)
		if m.lease(node, in) {
			yes = 1
		}
		in.Kind, in.To, in.B = leased, in.From, pack(yes, m.port.Free(node))
		m.tell(node, in)
	}
}

// tell sends a zone what is free, with any other message. Its own zone then needs no report of that.
func (m *nodes) tell(node int32, out swarm.Message) {
	m.port.Send(out)
	if out.To == m.c.ZoneAt(m.c.Zone(node)) {
		m.port.Told(node)
	}
}

// lie keeps a probe until all of this instant are there.
func (m *nodes) lie(now quantity.Instant, node int32, in swarm.Message) {
	first := true
	for i := range m.lying {
		first = first && m.lying[i].node != node
	}
	m.lying = append(m.lying, lying{node, in})
	switch {
	case m.v == FirstCome:
		m.decide(now, node)
	case first:
		m.port.After(0, swarm.Message{Kind: decides})
	}
}

// decide answers the probes at a node, in the order of their worth to it.
func (m *nodes) decide(now quantity.Instant, node int32) {
	m.probes, m.senders = m.probes[:0], m.senders[:0]
	rest := m.lying[:0]
	for _, l := range m.lying {
		e := m.get(l.X)
		switch {
		case l.node != node:
			rest = append(rest, l)
		case e != nil:
			m.probes, m.senders = append(m.probes, e.search.Probe()), append(m.senders, l.Message)
		}
	}
	m.lying = rest
	free := m.fragments(node, m.port.Free(node))
	for _, i := range m.arbiter.Order(now, &free, m.probes) {
		in, hold := m.senders[i], uint32(0)
		if m.v == Direct {
			m.start(node, in)
			continue
		}
		slot := m.port.Hold(node, uint8(m.probes[i].Class))
		if slot >= 0 {
			h := &m.holds[int(node)*swarm.MaxSlots+int(slot)]
			*h++
			hold = *h
			m.port.After(m.cfg.GrantTTL, swarm.Message{Kind: lapses, A: int32(slot), B: int32(hold)})
		}
		m.owes[node] = m.owes[node] || slot < 0 || in.C == 1
		m.tell(node, swarm.Message{Kind: answer, To: in.From, Task: in.Task, X: in.X, A: in.A, B: pack(int32(slot), m.port.Free(node)),
			C: int32(hold)})
	}
}

// lease redeems a hold, once; the same redemption is answered the same.
func (m *nodes) lease(node int32, in swarm.Message) bool {
	i := int(node)*swarm.MaxSlots + int(in.B)
	if _, lives := m.port.Task(in.Task); !lives || m.started[i] == uint32(in.C) {
		return true // it has started; if it is over nobody asks any more
	}
	if m.holds[i] != uint32(in.C) {
		return false // it has lapsed
	}
	m.holds[i]++
	if m.port.StartOn(node, int8(in.B), in.Task) != swarm.Started {
		m.port.Release(node, int8(in.B))
		return false
	}
	m.started[i] = uint32(in.C)
	return true
}

// start is what Direct does of a probe: the task runs if there is room. The same probe again is answered the same.
func (m *nodes) start(node int32, in swarm.Message) {
	t, lives := m.port.Task(in.Task)
	yes := int32(-1)
	for slot := range swarm.MaxSlots {
		if !lives || m.on[int(node)*swarm.MaxSlots+slot] == in.Task {
			yes = 0
		}
	}
	if yes < 0 {
		if slot := m.port.Hold(node, t.Class); slot >= 0 {
			if m.port.StartOn(node, slot, in.Task) == swarm.Started {
				m.on[int(node)*swarm.MaxSlots+int(slot)], yes = in.Task, 0
			} else {
				m.port.Release(node, slot)
			}
		}
	}
	m.owes[node] = m.owes[node] || yes < 0
	m.tell(node, swarm.Message{Kind: answer, To: in.From, Task: in.Task, X: in.X, A: in.A, B: pack(yes, m.port.Free(node))})
}

// forget closes the holds of a zone's nodes, which have died.
func (m *nodes) forget(z int32) {
	for i := z * int32(m.c.PerZone) * swarm.MaxSlots; i < (z+1)*int32(m.c.PerZone)*swarm.MaxSlots; i++ {
		m.holds[i] += m.holds[i] & 1
	}
}

// changed: slices of a node were taken or given back otherwise; the zone hears of it with the next report, and at once where somebody was
// refused.
func (m *nodes) changed(node int32) {
	if free := m.port.Free(node); m.owes[node] && free != 0 {
		m.owes[node] = false
		m.tell(node, swarm.Message{Kind: freed, To: m.c.ZoneAt(m.c.Zone(node)), B: pack(0, free)})
	}
}
