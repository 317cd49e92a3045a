// Package twolevel is scheduling by offers: an allocator offers what is free in one zone to one gate at a time, and the gate's own
// scheduler takes what it can use of it. What is offered is locked until the gate has answered. After Hindman et al., "Mesos: a
// platform for fine-grained resource sharing in the data center" (NSDI 2011), section 3; gates of equal demand take turns, which is
// what its allocator does with one resource.
package twolevel

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/line"
	"sluice.dev/sluice/internal/lab/swarm/pool"
)

// The protocol.
const (
	request uint8 = iota // gate to center: it has tasks
	offer                // center to gate: A the zone, X the number of the offer; what is free on each node
	accept               // gate to center: Task, A the node
	reply                // gate to center: the offer is used up: A the zone, B 1 if more tasks wait, X as in offer
	start                // center to node: A the slice that is meant
	// node to center: A the node, B what is free, C the slice of an order that is settled or -1, X 1 if its task was not started.
	state
	refused // center to gate: Task was not started
	// Timers.
	decided // gate: the decision about Task is made
	lapses  // center: the order of Task at node A, slice B was not answered
	again   // gate: it asks again after it has declined
	rescind // center: the offer of zone A to gate B was not answered, X as in offer
)

// patient is how many offers in a row a gate declines before it makes a pause of a period.
const patient = 4

// An offer stands for unanswered, and is used for used: what is not answered in time is taken for lost.
const (
	unanswered = time.Second
	used       = unanswered / 2
)

// Kind of mechanism.
func Kind() swarm.Kind {
	return swarm.Kind{
		Name: "two-level", Summary: "an allocator offers a zone's free slices to one scheduler at a time (Mesos, NSDI 2011)",
		Messages: []swarm.MessageKind{
			{Name: "request", Bytes: 16},
			{Name: "offer", Bytes: 128},
			{Name: "accept", Bytes: 48},
			{Name: "reply", Bytes: 24},
			{Name: "start", Bytes: 48, Hop: true},
			{Name: "state", Bytes: 32},
			{Name: "refused", Bytes: 24},
		},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			n := s.Cluster.PerZone
			m := &mechanism{
				c: s.Cluster, port: port, decision: s.Decision, period: s.Period, delay: s.Delay, patience: s.LostAfter(),
				gates: make([]scheduler, s.Gates), zones: make([]zone, s.Cluster.Zones), offered: make([]uint8, s.Cluster.Nodes()),
				wants: make([]bool, s.Gates),
			}
			for g := range m.gates {
				// A zone's nodes are as those of any other: the view is of the first, and holds what was offered.
				m.gates[g] = scheduler{view: pool.New(s.Cluster, 0, n), line: line.New(port), draws: prng.New(s.Seed, uint64(g)), zone: -1}
			}
			for z := range m.zones {
				m.zones[z].ledger = pool.NewLedger(s.Cluster, int32(z*n), n)
			}
			return m, nil
		},
	}
}

type mechanism struct {
	swarm.Deaf
	c               *swarm.Cluster
	port            swarm.Port
	decision        time.Duration
	period          time.Duration
	delay, patience time.Duration

	gates []scheduler

	// Of the center: the zones, what was offered of each, which gates want an offer and have none, whose turn it is.
	zones   []zone
	offered []uint8
	wants   []bool
	turn    int32 // gate
	next    int32 // zone
	offers  uint64

	// Of the nodes.
	memory pool.Memory
}

// zone as the allocator sees it: offer is the number of the one that is open, 0 for none.
type zone struct {
	ledger *pool.Ledger
	offer  uint64
}

// scheduler of a gate.
type scheduler struct {
	line  *line.Line
	draws prng.Stream
	// asked is when it last asked for an offer that has not come; 0: it has not.
	asked quantity.Instant
	// zone that is offered, -1 for none, under which number, since when, and what is left of it.
	zone  int32
	offer uint64
	since quantity.Instant
	view  *pool.Pool
	// took says whether it has taken something of it; declined counts the offers in a row of which it took nothing.
	took     bool
	declined int
}

// Arrive implements swarm.Mechanism.
func (m *mechanism) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for _, t := range tasks {
		m.gates[gate].line.Put(t)
	}
	m.ask(now, gate)
}

// ask asks for an offer, unless there is one or it has just asked.
func (m *mechanism) ask(now quantity.Instant, gate int32) {
	if g := &m.gates[gate]; g.zone < 0 && (g.asked == 0 || now.Sub(g.asked) > unanswered) {
		g.asked = now
		m.port.Send(swarm.Message{Kind: request, To: m.c.Center()})
	}
}

// Hear implements swarm.Mechanism.
func (m *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case request:
		_, gate := m.c.Whose(in.From)
		m.wants[gate] = true
		m.allocate(gate)
	case offer:
		m.take(now, in)
	case accept:
		m.order(in)
	case reply:
		_, gate := m.c.Whose(in.From)
		if z := &m.zones[in.A]; z.offer == in.X {
			z.offer = 0
			m.wants[gate] = in.B == 1
			m.turns(in.A)
		}
	case start:
		node, no := int32(in.To), uint64(0)
		if !m.memory.Start(m.port, node, in.Task) {
			no = 1
		}
		m.tell(node, swarm.Message{Task: in.Task, C: in.A, X: no})
	case state:
		z := m.c.Zone(in.A)
		l := m.zones[z].ledger
		settled := in.C >= 0 && l.Settle(in.A, int8(in.C), in.Task)
		l.Told(in.A, uint8(in.B))
		if t, ok := m.port.Task(in.Task); ok && settled && in.X == 1 {
			m.port.Send(swarm.Message{Kind: refused, To: m.c.GateAt(t.Gate), Task: t.ID})
		}
		m.turns(z)
	case refused:
		_, gate := m.c.Whose(in.To)
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			m.gates[gate].line.PutBack(t)
			m.ask(now, gate)
		}
	}
}

// turns offers a zone to the gate whose turn it is.
func (m *mechanism) turns(z int32) {
	if m.zones[z].offer != 0 || !m.zones[z].ledger.Has(0) {
		return
	}
	for range m.wants {
		gate := m.turn
		m.turn = (m.turn + 1) % int32(len(m.wants))
		if m.wants[gate] {
			m.send(gate, z)
			return
		}
	}
}

// allocate looks for a zone to offer to a gate.
func (m *mechanism) allocate(gate int32) {
	for range m.zones {
		z := m.next
		m.next = (m.next + 1) % int32(len(m.zones))
		if m.zones[z].offer == 0 && m.zones[z].ledger.Has(0) {
			m.send(gate, z)
			return
		}
	}
}

// send offers a zone to a gate and locks it.
func (m *mechanism) send(gate, zone int32) {
	m.offers++
	z := &m.zones[zone]
	z.offer = m.offers
	m.wants[gate] = false
	for i := range int32(m.c.PerZone) {
		n := zone*int32(m.c.PerZone) + i
		m.offered[n] = z.ledger.Free(n)
	}
	m.port.Send(swarm.Message{Kind: offer, To: m.c.GateAt(gate), A: zone, X: m.offers})
	m.port.After(unanswered, swarm.Message{Kind: rescind, A: zone, B: gate, X: m.offers})
}

// take begins to use an offer.
func (m *mechanism) take(now quantity.Instant, in swarm.Message) {
	_, gate := m.c.Whose(in.To)
	g := &m.gates[gate]
	if g.zone >= 0 { // a second one, after the first was taken for lost
		m.port.Send(swarm.Message{Kind: reply, To: m.c.Center(), A: in.A, X: in.X})
		return
	}
	g.zone, g.offer, g.since, g.asked, g.took = in.A, in.X, now, 0, false
	for i := range int32(m.c.PerZone) {
		g.view.Set(i, m.offered[in.A*int32(m.c.PerZone)+i])
	}
	m.decide(now, gate)
}

// decide takes the next task that fits what is left of the offer, or gives the offer back.
func (m *mechanism) decide(now quantity.Instant, gate int32) {
	g := &m.gates[gate]
	if t, ok := g.line.Take(now.Add(m.decision+2*m.delay), g.view.Has); ok && now.Sub(g.since) > used {
		g.line.PutBack(t)
	} else if ok {
		m.port.After(m.decision, swarm.Message{Kind: decided, Task: t.ID})
		return
	}
	if g.declined++; g.took {
		g.declined = 0
	}
	more := int32(0)
	if g.line.Len() > 0 {
		g.asked = now
		if g.declined < min(len(m.zones), patient) {
			more = 1
		} else { // what waits fits nowhere: Mesos has filters for that
			g.declined = 0
			m.port.After(m.period, swarm.Message{Kind: again})
		}
	}
	m.port.Send(swarm.Message{Kind: reply, To: m.c.Center(), A: g.zone, B: more, X: g.offer})
	g.zone = -1
}

// order gives a slice that a gate has accepted.
func (m *mechanism) order(in swarm.Message) {
	t, ok := m.port.Task(in.Task)
	if !ok {
		return
	}
	slot := m.zones[m.c.Zone(in.A)].ledger.Order(in.A, t.ID, t.Class)
	if slot < 0 { // the node has changed while it was offered
		m.port.Send(swarm.Message{Kind: refused, To: in.From, Task: t.ID})
		return
	}
	m.launch(t.ID, in.A, slot)
}

// launch gives an order.
func (m *mechanism) launch(t swarm.TaskID, node int32, slot int8) {
	m.port.Send(swarm.Message{Kind: start, To: m.c.At(node), Task: t, A: int32(slot)})
	m.port.After(m.patience, swarm.Message{Kind: lapses, Task: t, A: node, B: int32(slot)})
}

// repeat says an order again that was not answered. Only the same node may have it: it may run there. When the deadline has passed the
// node may be dead, and gets no more until it speaks.
func (m *mechanism) repeat(now quantity.Instant, in swarm.Message) {
	l := m.zones[m.c.Zone(in.A)].ledger
	if !l.Pending(in.A, int8(in.B), in.Task) {
		return
	}
	if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
		m.launch(in.Task, in.A, int8(in.B))
		return
	}
	l.Settle(in.A, int8(in.B), in.Task)
	l.Told(in.A, 0)
}

// Wake implements swarm.Mechanism.
func (m *mechanism) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case decided:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			i := g.view.Pick(&g.draws, t.Class)
			g.view.Take(i, t.Class)
			g.took = true
			m.port.Send(swarm.Message{Kind: accept, To: m.c.Center(), Task: t.ID, A: g.zone*int32(m.c.PerZone) + i})
		}
		m.decide(now, gate)
	case lapses:
		m.repeat(now, in)
	case again:
		_, gate := m.c.Whose(in.To)
		m.gates[gate].asked = 0
		if m.gates[gate].line.Len() > 0 {
			m.ask(now, gate)
		}
	case rescind:
		if z := &m.zones[in.A]; z.offer == in.X {
			z.offer = 0
			m.wants[in.B] = true
			m.turns(in.A)
		}
	}
}

// tell says at a node what is free there.
func (m *mechanism) tell(node int32, out swarm.Message) {
	out.Kind, out.To, out.A, out.B = state, m.c.Center(), node, int32(m.port.Free(node))
	m.port.Send(out)
}

// Changed implements swarm.Mechanism.
func (m *mechanism) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) {
	m.tell(node, swarm.Message{C: -1})
}
