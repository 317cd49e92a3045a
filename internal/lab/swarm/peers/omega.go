package peers

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// The protocol.
const (
	omegaCommit uint8 = iota // gate to center: A the node
	omegaStart               // and omegaState: see orderKinds
	omegaState
	omegaConflict // center to gate: the task was not placed; A the node, B what is free there
	omegaChanges  // center to gate: A the zone whose nodes changed since the last one; what is free on each
	// Timers.
	omegaDecided // gate: the decision about Task is made
	omegaLapses  // see orderKinds
	omegaSyncs   // center: a period is over
)

// Omega is optimistic shared state: every gate schedules alone on a copy of the whole cluster's state and commits to the
// one that counts, which takes a commit or finds it in conflict. After Schwarzkopf et al., "Omega: flexible, scalable schedulers
// for large compute clusters" (EuroSys 2013), section 3.4, with fine-grained conflicts and incremental transactions of one task.
func Omega() swarm.Kind {
	return swarm.Kind{
		Name: "omega", Summary: "parallel schedulers on copies of shared state, optimistic commits, conflicts retried (Omega, EuroSys " +
			"2013)",
		Messages: []swarm.MessageKind{
			{Name: "commit", Bytes: 48}, {Name: "start", Bytes: 48, Hop: true}, {Name: "state", Bytes: 32}, {Name: "conflict", Bytes: 32},
			{Name: "changes", Bytes: 128},
		},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			n := s.Cluster.Nodes()
			m := &omega{
				orders:   newOrders(s, port, orderKinds{omegaStart, omegaState, omegaLapses}),
				decision: s.Decision, period: s.Period, delay: s.Delay,
				gates: make([]omegaGate, s.Gates), ledger: newLedger(s.Cluster, 0, n), dirty: make([]bool, s.Cluster.Zones),
				sent: make([]uint8, n),
			}
			for g := range m.gates {
				m.gates[g] = omegaGate{view: newPool(s.Cluster, 0, n), line: newLine(port), draws: prng.New(s.Seed, uint64(g))}
			}
			return m, nil
		},
	}
}

type omega struct {
	orders
	decision, period, delay time.Duration

	gates []omegaGate

	// Of the center: the state that counts; zones that have changed since the gates' last copy; that copy.
	ledger *ledger
	dirty  []bool
	synced bool // the first period has begun
	sent   []uint8
}

// scheduler of a gate, with its copy of the state.
type omegaGate struct {
	view  *pool
	line  *line
	draws prng.Stream
	busy  bool
}

// Arrive implements swarm.Mechanism.
func (m *omega) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	for _, t := range tasks {
		m.gates[gate].line.Put(t)
	}
	m.decide(now, gate)
}

// decide takes the next task that fits anywhere, if the gate's scheduler is idle.
func (m *omega) decide(now quantity.Instant, gate int32) {
	g := &m.gates[gate]
	if g.busy {
		return
	}
	if t, ok := g.line.Take(now.Add(m.decision+2*m.delay), g.view.Has); ok {
		g.busy = true
		m.port.After(m.decision, swarm.Message{Kind: omegaDecided, Task: t.ID})
	}
}

// Wake implements swarm.Mechanism.
func (m *omega) Wake(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case omegaDecided:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		g.busy = false
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			if node := g.view.Pick(&g.draws, t.Class); node >= 0 {
				g.view.Take(node, t.Class)
				m.port.Send(swarm.Message{Kind: omegaCommit, To: m.c.Center(), Task: t.ID, A: node})
			} else {
				g.line.PutBack(t)
			}
		}
		m.decide(now, gate)
	case omegaLapses:
		if m.lapsed(now, m.ledger, in) {
			m.changed(in.A)
		}
	case omegaSyncs:
		m.sync()
	}
}

// Hear implements swarm.Mechanism.
func (m *omega) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case omegaCommit:
		m.commit(in)
	case omegaStart:
		m.follow(in)
	case omegaState:
		again := m.told(m.ledger, in)
		m.changed(in.A)
		if t, ok := m.port.Task(in.Task); ok && again {
			m.conflict(m.c.GateAt(t.Gate), in.Task, in.A)
		}
	case omegaConflict:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		g.view.Set(in.A, uint8(in.B))
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			g.line.PutBack(t)
		}
		m.decide(now, gate)
	case omegaChanges:
		_, gate := m.c.Whose(in.To)
		g := &m.gates[gate]
		for n := in.A * int32(m.c.PerZone); n < (in.A+1)*int32(m.c.PerZone); n++ {
			g.view.Set(n, m.sent[n])
		}
		m.decide(now, gate)
	}
}

// commit gives the slice at the center, if it is still free.
func (m *omega) commit(in swarm.Message) {
	if !m.synced {
		m.synced = true
		m.port.After(m.period, swarm.Message{Kind: omegaSyncs})
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
	m.give(t.ID, in.A, slot)
}

func (m *omega) conflict(gate swarm.Place, t swarm.TaskID, node int32) {
	m.port.Send(swarm.Message{Kind: omegaConflict, To: gate, Task: t, A: node, B: int32(m.ledger.Free(node))})
}

func (m *omega) changed(node int32) { m.dirty[m.c.Zone(node)] = true }

// sync tells every gate of the zones that have changed. What is sent is kept for as long as it is under way, which is less than a
// period.
func (m *omega) sync() {
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
			m.port.Send(swarm.Message{Kind: omegaChanges, To: m.c.GateAt(int32(g)), A: int32(z)})
		}
	}
	m.port.After(m.period, swarm.Message{Kind: omegaSyncs})
}
