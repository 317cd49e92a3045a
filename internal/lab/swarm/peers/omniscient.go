package peers

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Omniscient is the upper line: it sees the truth of every node at once and acts on it without a message.
func Omniscient() swarm.Kind {
	return swarm.Kind{
		Name: "omniscient", Summary: "one placer that knows the truth and acts at once: the upper line", Omniscient: true,
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			return &omniscient{c: s.Cluster, port: port, pool: newPool(s.Cluster, 0, s.Cluster.Nodes()), line: newLine(port),
				draws: prng.New(s.Seed)}, nil
		},
	}
}

type omniscient struct {
	swarm.Deaf
	c     *swarm.Cluster
	port  swarm.Port
	pool  *pool
	line  *line
	draws prng.Stream
}

// Arrive implements swarm.Mechanism.
func (m *omniscient) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	for _, t := range tasks {
		if !m.place(t) {
			m.line.Put(t)
		}
	}
}

// place starts a task on a slice of the smallest size that is free anywhere.
func (m *omniscient) place(t swarm.Task) bool {
	for {
		node := m.pool.Pick(&m.draws, t.Class)
		if node < 0 {
			return false
		}
		out := m.port.Start(node, t.ID)
		m.pool.Set(node, m.port.Free(node))
		if out == swarm.Started {
			return true
		}
	}
}

// Changed implements swarm.Mechanism.
func (m *omniscient) Changed(now quantity.Instant, node int32, _ swarm.TaskID) {
	free := m.port.Free(node)
	for free != 0 && m.line.Len() > 0 {
		t, ok := m.line.Take(now, func(class uint8) bool { return m.c.Room(node, free, class) > 0 })
		if !ok {
			break
		}
		m.port.Start(node, t.ID)
		free = m.port.Free(node)
	}
	m.pool.Set(node, free)
}
