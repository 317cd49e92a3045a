package peers

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// The protocol.
const (
	offerRequest uint8 = iota // gate to center: it has tasks
	offerMade                 // center to gate: A the zone, X the number of the offer; what is free on each node
	offerAccept               // gate to center: Task, A the node
	offerReply                // gate to center: the offer is used up: A the zone, B 1 if more tasks wait, X as in offer
	offerStart                // and offerState: see orderKinds
	offerState
	offerRefused // center to gate: Task was not started
	// Timers.
	offerDecided // gate: the decision about Task is made
	offerLapses  // see orderKinds
	offerAgain   // gate: it asks again after it has declined
	offerRescind // center: the offer of zone A to gate B was not answered, X as in offer
)

// patient is how many offers in a row a gate declines before it makes a pause of a period.
const mostDeclined = 4

// An offer stands for unanswered, and is used for used: what is not answered in time is taken for lost.
const (
	offerStands = time.Second
	offerUsed   = offerStands / 2
)

// TwoLevel is scheduling by offers: an allocator offers what is free in one zone to one gate at a time, and the gate's own
// scheduler takes what it can use of it. What is offered is locked until the gate has answered. After Hindman et al., "Mesos: a
// platform for fine-grained resource sharing in the data center" (NSDI 2011), section 3; gates of equal demand take turns, which is
// what its allocator does with one resource.
func TwoLevel() swarm.Kind {
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
			m := &twoLevel{
				orders:   newOrders(s, port, orderKinds{offerStart, offerState, offerLapses}),
				decision: s.Decision, period: s.Period, delay: s.Delay,
				gates: make([]offeredGate, s.Gates), zones: make([]offeredZone, s.Cluster.Zones), offered: make([]uint8, s.Cluster.Nodes()),
				wants: make([]bool, s.Gates),
			}
			for g := range m.gates {
				// A zone's nodes are as those of any other: the view is of the first, and holds what was offered.
				m.gates[g] = offeredGate{view: newPool(s.Cluster, 0, n), line: newLine(port), draws: prng.New(s.Seed, uint64(g)), zone: -1}
			}
			for z := range m.zones {
				m.zones[z].ledger = newLedger(s.Cluster, int32(z*n), n)
			}
			return m, nil
		},
	}
}

type twoLevel struct {
	orders
	decision, period, delay time.Duration

	gates []offeredGate

	// Of the center: the zones, what was offered of each, which gates want an offer and have none, whose turn it is.
	zones   []offeredZone
	offered []uint8
	wants   []bool
	turn    int32 // gate
	next    int32 // zone
	offers  uint64
}

// zone as the allocator sees it: offer is the number of the one that is open, 0 for none.
type offeredZone struct {
	ledger *ledger
	offer  uint64
}

// scheduler of a gate.
type offeredGate struct {
	line  *line
	draws prng.Stream
	// asked is when it last asked for an offer that has not come; 0: it has not.
	asked quantity.Instant
	// zone that is offered, -1 for none, under which number, since when, and what is left of it.
	zone  int32
	offer uint64
	since quantity.Instant
	view  *pool
	// took reports whether it has taken any of it; declined counts the offers in a row of which it took nothing.
	took     bool
	declined int
}

// Arrive implements swarm.Mechanism.
func (m *twoLevel) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for _, t := range tasks {
		m.gates[gate].line.Put(t)
	}
	m.ask(now, gate)
}

// ask asks for an offer, unless there is one or it has just asked.
func (m *twoLevel) ask(now quantity.Instant, gate int32) {
	if g := &m.gates[gate]; g.zone < 0 && (g.asked == 0 || now.Sub(g.asked) > offerStands) {
		g.asked = now
		m.port.Send(swarm.Message{Kind: offerRequest, To: m.c.Center()})
	}
}

// Hear implements swarm.Mechanism.
func (m *twoLevel) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case offerRequest:
		_, gate := m.c.Whose(in.From)
		m.wants[gate] = true
		m.allocate(gate)
	case offerMade:
		m.take(now, in)
	case offerAccept:
		m.order(in)
	case offerReply:
		_, gate := m.c.Whose(in.From)
		if z := &m.zones[in.A]; z.offer == in.X {
			z.offer = 0
			m.wants[gate] = in.B == 1
			m.turns(in.A)
		}
	case offerStart:
		m.follow(in)
	case offerState:
		z := m.c.Zone(in.A)
		again := m.told(m.zones[z].ledger, in)
		if t, ok := m.port.Task(in.Task); ok && again {
			m.port.Send(swarm.Message{Kind: offerRefused, To: m.c.GateAt(t.Gate), Task: t.ID})
		}
		m.turns(z)
	case offerRefused:
		_, gate := m.c.Whose(in.To)
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			m.gates[gate].line.PutBack(t)
			m.ask(now, gate)
		}
	}
}

// turns offers a zone to the gate whose turn it is.
func (m *twoLevel) turns(z int32) {
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
func (m *twoLevel) allocate(gate int32) {
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
func (m *twoLevel) send(gate, zone int32) {
	m.offers++
	z := &m.zones[zone]
	z.offer = m.offers
	m.wants[gate] = false
	for i := range int32(m.c.PerZone) {
		n := zone*int32(m.c.PerZone) + i
		m.offered[n] = z.ledger.Free(n)
	}
	m.port.Send(swarm.Message{Kind: offerMade, To: m.c.GateAt(gate), A: zone, X: m.offers})
	m.port.After(offerStands, swarm.Message{Kind: offerRescind, A: zone, B: gate, X: m.offers})
}

// take begins to use an offer.
func (m *twoLevel) take(now quantity.Instant, in swarm.Message) {
	_, gate := m.c.Whose(in.To)
	g := &m.gates[gate]
	if g.zone >= 0 { // a second one, after the first was taken for lost
		m.port.Send(swarm.Message{Kind: offerReply, To: m.c.Center(), A: in.A, X: in.X})
		return
	}
	g.zone, g.offer, g.since, g.asked, g.took = in.A, in.X, now, 0, false
	for i := range int32(m.c.PerZone) {
		g.view.Set(i, m.offered[in.A*int32(m.c.PerZone)+i])
	}
	m.decide(now, gate)
}

// decide takes the next task that fits what is left of the offer, or gives the offer back.
func (m *twoLevel) decide(now quantity.Instant, gate int32) {
	g := &m.gates[gate]
	if t, ok := g.line.Take(now.Add(m.decision+2*m.delay), g.view.Has); ok && now.Sub(g.since) > offerUsed {
		g.line.PutBack(t)
	} else if ok {
		m.port.After(m.decision, swarm.Message{Kind: offerDecided, Task: t.ID})
		return
	}
	if g.declined++; g.took {
		g.declined = 0
	}
	more := int32(0)
	if g.line.Len() > 0 {
		g.asked = now
		if g.declined < min(len(m.zones), mostDeclined) {
			more = 1
		} else { // what waits fits nowhere: Mesos has filters for that
			g.declined = 0
			m.port.After(m.period, swarm.Message{Kind: offerAgain})
		}
	}
	m.port.Send(swarm.Message{Kind: offerReply, To: m.c.Center(), A: g.zone, B: more, X: g.offer})
	g.zone = -1
}

// order gives a slice that a gate has accepted.
func (m *twoLevel) order(in swarm.Message) {
	t, ok := m.port.Task(in.Task)
	if !ok {
		return
	}
	slot := m.zones[m.c.Zone(in.A)].ledger.Order(in.A, t.ID, t.Class)
	if slot < 0 { // the node has changed while it was offered
		m.port.Send(swarm.Message{Kind: offerRefused, To: in.From, Task: t.ID})
		return
	}
	m.give(t.ID, in.A, slot)
}

// Wake implements swarm.Mechanism.
func (m *twoLevel) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case offerDecided:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			i := g.view.Pick(&g.draws, t.Class)
			g.view.Take(i, t.Class)
			g.took = true
			m.port.Send(swarm.Message{Kind: offerAccept, To: m.c.Center(), Task: t.ID, A: g.zone*int32(m.c.PerZone) + i})
		}
		m.decide(now, gate)
	case offerLapses:
		m.lapsed(now, m.zones[m.c.Zone(in.A)].ledger, in)
	case offerAgain:
		_, gate := m.c.Whose(in.To)
		m.gates[gate].asked = 0
		if m.gates[gate].line.Len() > 0 {
			m.ask(now, gate)
		}
	case offerRescind:
		if z := &m.zones[in.A]; z.offer == in.X {
			z.offer = 0
			m.wants[in.B] = true
			m.turns(in.A)
		}
	}
}
