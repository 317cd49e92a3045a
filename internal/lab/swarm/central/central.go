// Package central is one queue and one scheduler for the whole cluster, which decides about one task after another.
package central

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
	submit uint8 = iota // gate to center
	start               // center to node; A the slice that is meant
	// node to center: A the node, B what is free, C the slice of an order that is settled or -1, X 1 if its task was not started.
	state
	// Timers of the center.
	decided // the decision about Task is made
	lapses  // the order of Task at node A, slice B was not answered
)

// Kind of mechanism.
func Kind() swarm.Kind {
	return swarm.Kind{
		Name: "central", Summary: "one queue at one scheduler that knows every node and decides about one task after another (as " +
			"Kubernetes and YARN do)",
		Messages: []swarm.MessageKind{{Name: "submit", Bytes: 48}, {Name: "start", Bytes: 48, Hop: true}, {Name: "state", Bytes: 32}},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			return &mechanism{
				c: s.Cluster, port: port, decision: s.Decision, delay: s.Delay, patience: s.LostAfter(),
				ledger: pool.NewLedger(s.Cluster, 0, s.Cluster.Nodes()), line: line.New(port), draws: prng.New(s.Seed),
			}, nil
		},
	}
}

type mechanism struct {
	swarm.Deaf
	c        *swarm.Cluster
	port     swarm.Port
	decision time.Duration
	delay    time.Duration // of a message
	patience time.Duration // for the answer to an order

	// Of the nodes.
	memory pool.Memory

	// Of the center.
	ledger *pool.Ledger
	line   *line.Line
	busy   bool
	draws  prng.Stream
}

// Arrive implements swarm.Mechanism.
func (m *mechanism) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	for i := range tasks {
		m.port.Send(swarm.Message{Kind: submit, To: m.c.Center(), Task: tasks[i].ID})
	}
}

// Hear implements swarm.Mechanism.
func (m *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case submit:
		if t, ok := m.port.Task(in.Task); ok {
			m.line.Put(t)
		}
	case start:
		node := int32(in.To)
		refused := uint64(0)
		if !m.memory.Start(m.port, node, in.Task) {
			refused = 1
		}
		m.tell(node, swarm.Message{Task: in.Task, C: in.A, X: refused})
		return
	case state:
		settled := in.C >= 0 && m.ledger.Settle(in.A, int8(in.C), in.Task)
		m.ledger.Told(in.A, uint8(in.B))
		if settled && in.X == 1 {
			m.again(now, in.Task)
		}
	}
	m.decide(now)
}

// tell says at a node what is free there.
func (m *mechanism) tell(node int32, out swarm.Message) {
	out.Kind, out.To, out.A, out.B = state, m.c.Center(), node, int32(m.port.Free(node))
	m.port.Send(out)
}

// repeat says an order again that was not answered. Only the same node may have it: it may run there. When the deadline has passed the
// node may be dead, and gets no more until it speaks.
func (m *mechanism) repeat(now quantity.Instant, in swarm.Message) {
	if !m.ledger.Pending(in.A, int8(in.B), in.Task) {
		return
	}
	if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
		m.send(in.Task, in.A, int8(in.B))
		return
	}
	m.ledger.Settle(in.A, int8(in.B), in.Task)
	m.ledger.Told(in.A, 0)
}

// send gives an order.
func (m *mechanism) send(t swarm.TaskID, node int32, slot int8) {
	m.port.Send(swarm.Message{Kind: start, To: m.c.At(node), Task: t, A: int32(slot)})
	m.port.After(m.patience, swarm.Message{Kind: lapses, Task: t, A: node, B: int32(slot)})
}

// again puts a task that was not started back in front.
func (m *mechanism) again(now quantity.Instant, id swarm.TaskID) {
	if t, ok := m.port.Task(id); ok && t.Deadline > now {
		m.line.PutBack(t)
	}
}

// Changed implements swarm.Mechanism.
func (m *mechanism) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) {
	m.tell(node, swarm.Message{C: -1})
}

// decide takes the next task that fits anywhere, if the scheduler is idle.
func (m *mechanism) decide(now quantity.Instant) {
	if m.busy {
		return
	}
	// Who could not be there in time is passed over: behind a long queue everybody at its head would be late.
	if t, ok := m.line.Take(now.Add(m.decision+m.delay), m.ledger.Has); ok {
		m.busy = true
		m.port.After(m.decision, swarm.Message{Kind: decided, Task: t.ID})
	}
}

// Wake implements swarm.Mechanism.
func (m *mechanism) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case decided:
		m.busy = false
		m.order(now, in.Task)
		m.decide(now)
	case lapses:
		m.repeat(now, in)
	}
}

// order sends a task to a node that is believed to have room.
func (m *mechanism) order(now quantity.Instant, id swarm.TaskID) {
	t, ok := m.port.Task(id)
	if !ok || t.Deadline <= now {
		return
	}
	node := m.ledger.Pick(&m.draws, t.Class)
	if node < 0 {
		m.line.PutBack(t)
		return
	}
	m.send(id, node, m.ledger.Order(node, id, t.Class))
}
