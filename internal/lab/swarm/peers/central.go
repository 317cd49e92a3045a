package peers

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// The protocol.
const (
	centralSubmit uint8 = iota // gate to center
	centralStart               // and centralState: see orderKinds
	centralState
	// Timers of the center.
	centralDecided // the decision about Task is made
	centralLapses  // see orderKinds
)

// Central is one queue and one scheduler for the whole cluster, which decides about one task after another.
func Central() swarm.Kind {
	return swarm.Kind{
		Name: "central", Summary: "one queue at one scheduler that knows every node and decides about one task after another (as " +
			"Kubernetes and YARN do)",
		Messages: []swarm.MessageKind{{Name: "submit", Bytes: 48}, {Name: "start", Bytes: 48, Hop: true}, {Name: "state", Bytes: 32}},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			return &central{
				orders:   newOrders(s, port, orderKinds{centralStart, centralState, centralLapses}),
				decision: s.Decision, delay: s.Delay,
				ledger: newLedger(s.Cluster, 0, s.Cluster.Nodes()), line: newLine(port), draws: prng.New(s.Seed),
			}, nil
		},
	}
}

type central struct {
	orders
	decision time.Duration
	delay    time.Duration // of a message

	// Of the center.
	ledger *ledger
	line   *line
	busy   bool
	draws  prng.Stream
}

// Arrive implements swarm.Mechanism.
func (m *central) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	for i := range tasks {
		m.port.Send(swarm.Message{Kind: centralSubmit, To: m.c.Center(), Task: tasks[i].ID})
	}
}

// Hear implements swarm.Mechanism.
func (m *central) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case centralSubmit:
		if t, ok := m.port.Task(in.Task); ok {
			m.line.Put(t)
		}
	case centralStart:
		m.follow(in)
		return
	case centralState:
		if m.told(m.ledger, in) {
			m.again(now, in.Task)
		}
	}
	m.decide(now)
}

// again puts a task that was not started back in front.
func (m *central) again(now quantity.Instant, id swarm.TaskID) {
	if t, ok := m.port.Task(id); ok && t.Deadline > now {
		m.line.PutBack(t)
	}
}

// decide takes the next task that fits anywhere, if the scheduler is idle.
func (m *central) decide(now quantity.Instant) {
	if m.busy {
		return
	}
	// Who could not be there in time is passed over: behind a long queue everybody at its head would be late.
	if t, ok := m.line.Take(now.Add(m.decision+m.delay), m.ledger.Has); ok {
		m.busy = true
		m.port.After(m.decision, swarm.Message{Kind: centralDecided, Task: t.ID})
	}
}

// Wake implements swarm.Mechanism.
func (m *central) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case centralDecided:
		m.busy = false
		m.order(now, in.Task)
		m.decide(now)
	case centralLapses:
		m.lapsed(now, m.ledger, in)
	}
}

// order sends a task to a node that is believed to have room.
func (m *central) order(now quantity.Instant, id swarm.TaskID) {
	t, ok := m.port.Task(id)
	if !ok || t.Deadline <= now {
		return
	}
	node := m.ledger.Pick(&m.draws, t.Class)
	if node < 0 {
		m.line.PutBack(t)
		return
	}
	m.give(id, node, m.ledger.Order(node, id, t.Class))
}
