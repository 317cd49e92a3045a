package laminar

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

type mechanism struct {
	v    Variant
	c    *swarm.Cluster
	port swarm.Port
	cfg  *flow.Config
	loop *flow.Search
	// retry is how long an answer to a redemption is waited for at first.
	retry time.Duration

	// tickets under way, and by task which is its: the contents of messages about them.
	tickets []ticket
	spare   []uint32
	of      []uint64

	gates []gate
	zones []zone

	// Of the nodes: the arbiter, and by slice the number of its last hold, which is odd while it is open, and of the last that was started.
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

// ticket is one search with what the parties that have it know beside it.
type ticket struct {
	flow.Ticket
	task swarm.TaskID
	// id is the place in tickets, and above 32 bits how many had it before.
	id   uint64
	home int32
	// move numbers what it waits for: answers and timers of earlier ones are old.
	move int32
	// void: its home has made another one.
	void bool
	// owned: its home has it, and (confirmed) its gate knows. parked: it lies in the lot there. claimed: its home has claimed where it has
	// landed.
	owned, confirmed, parked, claimed bool
	// trips counts how often it has left its home.
	trips int32
	// node, slice and hold that it has landed on.
	node int32
	slot int8
	hold uint32
}

func newMechanism(v Variant, s swarm.Setup, port swarm.Port) (*mechanism, error) {
	cfg, err := config(v, &s)
	if err != nil {
		return nil, err
	}
	n := s.Cluster.Nodes()
	m := &mechanism{
		v: v, c: s.Cluster, port: port, cfg: cfg, loop: flow.NewSearch(cfg), retry: s.LostAfter(), arbiter: flow.NewArbiter(cfg),
		gates: make([]gate, s.Gates), zones: make([]zone, s.Cluster.Zones), holds: make([]uint32, n*swarm.MaxSlots),
		started: make([]uint32, n*swarm.MaxSlots),
	}
	m.owes = make([]bool, n)
	if v == Direct {
		m.on = make([]swarm.TaskID, n*swarm.MaxSlots)
	}
	for z := range m.zones {
		m.zones[z].lot = flow.NewLot()
		m.begin(int32(z), true)
	}
	for g := range m.gates {
		m.gates[g].splitter = flow.NewSplitter(cfg, s.Cluster.Zones)
		for z := range m.zones {
			d := m.zones[z].nodes.Digest(0)
			m.gates[g].splitter.Hear(0, &d)
		}
		m.gates[g].splitter.Rebuild(0)
	}
	return m, nil
}

// create makes a ticket for a task, which is its from now on.
func (m *mechanism) create(t *swarm.Task) *ticket {
	var i uint32
	if n := len(m.spare); n > 0 {
		i, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		i = uint32(len(m.tickets))
		m.tickets = append(m.tickets, ticket{id: uint64(i)})
	}
	e := &m.tickets[i]
	*e = ticket{id: e.id, task: t.ID, home: -1}
	e.Ticket = flow.Ticket{
		ID: flow.TicketID(t.ID), Demand: m.cfg.Classes[t.Class], Deadline: t.Deadline, Born: t.Arrived, Class: flow.Class(t.Class),
		Kind: flow.Fleeting,
	}
	if t.Deadline == quantity.Never {
		e.Deadline = 0
	}
	if t.Long {
		e.Kind = flow.Lasting
	}
	for len(m.of) <= t.ID.Slot() {
		m.of = append(m.of, 0)
	}
	m.of[t.ID.Slot()] = e.id
	return e
}

// drop ends a ticket.
func (m *mechanism) drop(e *ticket) {
	m.spare = append(m.spare, uint32(e.id))
	e.id += 1 << 32
	e.task, e.void = 0, false
}

// get is a ticket that is under way, nil if it is over.
func (m *mechanism) get(id uint64) *ticket {
	if e := &m.tickets[uint32(id)]; e.id == id && e.task != 0 {
		return e
	}
	return nil
}

// fragments is a set of slices of a node by class.
func (m *mechanism) fragments(node int32, set uint8) (f flow.Fragments) {
	slots := m.c.Slots(node)
	for ; set != 0; set &= set - 1 {
		f[slots[bits.TrailingZeros8(set)]]++
	}
	return f
}

// pack and unpack a small number and a set of slices.
func pack(n int32, free uint8) int32 { return n<<8 | int32(free) }

func unpack(x int32) (n int32, free uint8) { return x >> 8, uint8(x) }

// Hear implements swarm.Mechanism.
func (m *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	role, i := m.c.Whose(in.To)
	switch role {
	case swarm.Gate:
		m.atGate(now, i, in)
	case swarm.Zone:
		m.atZone(now, i, in)
	case swarm.Node:
		m.atNode(now, i, in)
	case swarm.Center:
	}
}

// Wake implements swarm.Mechanism.
func (m *mechanism) Wake(now quantity.Instant, in swarm.Message) { m.Hear(now, in) }

// Changed implements swarm.Mechanism: the zone hears of it with the next report, and at once where somebody was refused.
func (m *mechanism) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) {
	if free := m.port.Free(node); m.owes[node] && free != 0 {
		m.owes[node] = false
		m.tell(node, swarm.Message{Kind: freed, To: m.c.ZoneAt(m.c.Zone(node)), B: pack(0, free)})
	}
}
