// Package omega is optimistic shared state: every gate schedules alone on a copy of the whole cluster's state and commits to the
// one that counts, which takes a commit or finds it in conflict. After Schwarzkopf et al., "Omega: flexible, scalable schedulers
// for large compute clusters" (EuroSys 2013), section 3.4, with fine-grained conflicts and incremental transactions of one task.
package omega

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/line"
	"sluice.dev/sluice/internal/lab/swarm/pool"
)

// The protocol. Conflict is exported for those who count it.
const (
	commit uint8 = iota // gate to center: A the node
	start               // center to node: A the slice that is meant
	// node to center: A the node, B what is free, C the slice of an order that is settled or -1, X 1 if its task was not started.
	state
	Conflict // center to gate: the task was not placed; A the node, B what is free there
	changes  // center to gate: A the zone whose nodes changed since the last one; what is free on each
	// Timers.
	decided // gate: the decision about Task is made
	lapses  // center: the order of Task at node A, slice B was not answered
	syncs   // center: a period is over
)

// Kind of mechanism.
func Kind() swarm.Kind {
	return swarm.Kind{
		Name: "omega", Summary: "parallel schedulers on copies of shared state, optimistic commits, conflicts retried (Omega, EuroSys " +
			"2013)",
		Messages: []swarm.MessageKind{
			{Name: "commit", Bytes: 48}, {Name: "start", Bytes: 48, Hop: true}, {Name: "state", Bytes: 32}, {Name: "conflict", Bytes: 32},
			{Name: "changes", Bytes: 128},
		},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			n := s.Cluster.Nodes()
			m := &mechanism{
				c: s.Cluster, port: port, decision: s.Decision, period: s.Period, delay: s.Delay, patience: s.LostAfter(),
				gates: make([]scheduler, s.Gates), ledger: pool.NewLedger(s.Cluster, 0, n), dirty: make([]bool, s.Cluster.Zones),
				sent: make([]uint8, n),
			}
			for g := range m.gates {
				m.gates[g] = scheduler{view: pool.New(s.Cluster, 0, n), line: line.New(port), draws: prng.New(s.Seed, uint64(g))}
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

	// Of the center: the state that counts; zones that have changed since the gates were told; what they were told then.
	ledger *pool.Ledger
	dirty  []bool
	synced bool // the first period has begun
	sent   []uint8

	// Of the nodes.
	memory pool.Memory
}

// scheduler of a gate, with its copy of the state.
type scheduler struct {
	view  *pool.Pool
	line  *line.Line
	draws prng.Stream
	busy  bool
}

// Arrive implements swarm.Mechanism.
func (m *mechanism) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for _, t := range tasks {
		m.gates[gate].line.Put(t)
	}
	m.decide(now, gate)
}

// decide takes the next task that fits anywhere, if the gate's scheduler is idle.
func (m *mechanism) decide(now quantity.Instant, gate int32) {
	g := &m.gates[gate]
	if g.busy {
		return
	}
	if t, ok := g.line.Take(now.Add(m.decision+2*m.delay), g.view.Has); ok {
		g.busy = true
		m.port.After(m.decision, swarm.Message{Kind: decided, Task: t.ID})
	}
}

// Wake implements swarm.Mechanism.
func (m *mechanism) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case decided:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		g.busy = false
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			if node := g.view.Pick(&g.draws, t.Class); node >= 0 {
				g.view.Take(node, t.Class)
				m.port.Send(swarm.Message{Kind: commit, To: m.c.Center(), Task: t.ID, A: node})
			} else {
				g.line.PutBack(t)
			}
		}
		m.decide(now, gate)
	case lapses:
		m.repeat(now, in)
	case syncs:
		m.sync()
	}
}

// Hear implements swarm.Mechanism.
func (m *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case commit:
		m.commit(in)
	case start:
		node := int32(in.To)
		refused := uint64(0)
		if !m.memory.Start(m.port, node, in.Task) {
			refused = 1
		}
		m.tell(node, swarm.Message{Task: in.Task, C: in.A, X: refused})
	case state:
		settled := in.C >= 0 && m.ledger.Settle(in.A, int8(in.C), in.Task)
		m.ledger.Told(in.A, uint8(in.B))
		m.changed(in.A)
		if t, ok := m.port.Task(in.Task); ok && settled && in.X == 1 {
			m.conflict(m.c.GateAt(t.Gate), in.Task, in.A)
		}
	case Conflict:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		g.view.Set(in.A, uint8(in.B))
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			g.line.PutBack(t)
		}
		m.decide(now, gate)
	case changes:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		for n := in.A * int32(m.c.PerZone); n < (in.A+1)*int32(m.c.PerZone); n++ {
			g.view.Set(n, m.sent[n])
		}
		m.decide(now, gate)
	}
}

// commit gives the slice at the center, if it is still free.
func (m *mechanism) commit(in swarm.Message) {
	if !m.synced {
		m.synced = true
		m.port.After(m.period, swarm.Message{Kind: syncs})
	}
	t, ok := m.port.Task(in.Task)
	if !ok {
		return
	}
	slot := m.ledger.Order(in.A, t.ID, t.Class)
	if slot < 0 {
		m.conflict(in.From, in.Task, in.A)
		return
	}
	m.changed(in.A)
	m.send(t.ID, in.A, slot)
}

// send gives an order.
func (m *mechanism) send(t swarm.TaskID, node int32, slot int8) {
	m.port.Send(swarm.Message{Kind: start, To: m.c.At(node), Task: t, A: int32(slot)})
	m.port.After(m.patience, swarm.Message{Kind: lapses, Task: t, A: node, B: int32(slot)})
}

// repeat says an order again that was not answered. Only the same node may have it: it may run there. When the deadline has passed the
// node may be dead, and nothing there is free until it speaks.
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
	m.changed(in.A)
}

func (m *mechanism) conflict(gate swarm.Place, t swarm.TaskID, node int32) {
	m.port.Send(swarm.Message{Kind: Conflict, To: gate, Task: t, A: node, B: int32(m.ledger.Free(node))})
}

func (m *mechanism) changed(node int32) { m.dirty[m.c.Zone(node)] = true }

// sync tells every gate of the zones that have changed. What is sent is kept for as long as it is under way, which is less than a
// period.
func (m *mechanism) sync() {
	for z := range m.dirty {
		if !m.dirty[z] {
			continue
		}
		m.dirty[z] = false
		for i := range m.c.PerZone {
			n := z*m.c.PerZone + i
			m.sent[n] = m.ledger.Free(int32(n))
		}
		for g := range m.gates {
			m.port.Send(swarm.Message{Kind: changes, To: m.c.GateAt(int32(g)), A: int32(z)})
		}
	}
	m.port.After(m.period, swarm.Message{Kind: syncs})
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
