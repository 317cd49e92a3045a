package laminar

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// ticket is one search with the knowledge of its holders.
type ticket struct {
	// search is the ticket as the loop knows it.
	search flow.Ticket
	task   swarm.TaskID
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

func (e *ticket) due(now quantity.Instant) bool {
	return e.search.Deadline != 0 && e.search.Deadline <= now
}

// pool is the tickets under way, and by task which is its: the contents of messages about them. Invariant: a ticket that get finds has a
// task, and of gives the last one that was made for a task.
type pool struct {
	cfg     *flow.Config
	tickets []ticket
	spare   []uint32
	of      []uint64
}

// create makes a ticket for a task, which is its from now on.
func (p *pool) create(t *swarm.Task) *ticket {
	var i uint32
	if n := len(p.spare); n > 0 {
		i, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		i = uint32(len(p.tickets))
		p.tickets = append(p.tickets, ticket{id: uint64(i)})
	}
	e := &p.tickets[i]
	*e = ticket{id: e.id, task: t.ID, home: -1}
	e.search = flow.Ticket{
		ID: flow.TicketID(t.ID), Demand: p.cfg.Classes[t.Class], Deadline: t.Deadline, Born: t.Arrived, Class: flow.Class(t.Class),
		Kind: flow.Fleeting,
	}
	if t.Deadline == quantity.Never {
		e.search.Deadline = 0
	}
	if t.Long {
		e.search.Kind = flow.Lasting
	}
	for len(p.of) <= t.ID.Slot() {
		p.of = append(p.of, 0)
	}
	p.of[t.ID.Slot()] = e.id
	return e
}

// drop ends a ticket.
func (p *pool) drop(e *ticket) {
	p.spare = append(p.spare, uint32(e.id))
	e.id += 1 << 32
	e.task, e.void = 0, false
}

// get is a ticket that is under way, nil if it is over.
func (p *pool) get(id uint64) *ticket {
	if e := &p.tickets[uint32(id)]; e.id == id && e.task != 0 {
		return e
	}
	return nil
}

// ofTask is the last ticket of a task, nil if it is over.
func (p *pool) ofTask(t swarm.TaskID) *ticket {
	if t.Slot() >= len(p.of) {
		return nil
	}
	return p.get(p.of[t.Slot()])
}

// ground is what all parties stand on.
type ground struct {
	*pool
	v    Variant
	c    *swarm.Cluster
	port swarm.Port
	loop *flow.Search
	// retry is how long an answer to a redemption is waited for at first.
	retry time.Duration
}

// fragments is a set of slices of a node by class.
func (m *ground) fragments(node int32, set uint8) (f flow.Fragments) {
	slots := m.c.Slots(node)
	for ; set != 0; set &= set - 1 {
		f[slots[bits.TrailingZeros8(set)]]++
	}
	return f
}

// pack and unpack a small number and a set of slices.
func pack(n int32, free uint8) int32 { return n<<8 | int32(free) }

func unpack(x int32) (n int32, free uint8) { return x >> 8, uint8(x) }
