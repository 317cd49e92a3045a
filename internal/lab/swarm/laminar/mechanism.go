package laminar

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// mechanism is the parties, which share tickets and nothing else.
type mechanism struct {
	c     *swarm.Cluster
	gates *gates
	zones *zones
	nodes *nodes
}

func newMechanism(v Variant, s swarm.Setup, port swarm.Port) (*mechanism, error) {
	cfg, err := config(v, &s)
	if err != nil {
		return nil, err
	}
	at := ground{
		pool: &pool{cfg: cfg}, v: v, c: s.Cluster, port: port, loop: flow.NewSearch(cfg), retry: s.LostAfter(),
	}
	m := &mechanism{c: s.Cluster, nodes: newNodes(at), zones: newZones(at)}
	m.gates = newGates(at, s.Gates, m.zones)
	return m, nil
}

// Hear implements swarm.Mechanism.
func (m *mechanism) Hear(now quantity.Instant, in swarm.Message) {
	role, i := m.c.Whose(in.To)
	switch role {
	case swarm.Gate:
		m.gates.hear(now, i, in)
	case swarm.Zone:
		m.zones.hear(now, i, in)
	case swarm.Node:
		m.nodes.hear(now, i, in)
	case swarm.Center:
	}
}

// Wake implements swarm.Mechanism.
func (m *mechanism) Wake(now quantity.Instant, in swarm.Message) { m.Hear(now, in) }

// Arrive implements swarm.Mechanism.
func (m *mechanism) Arrive(now quantity.Instant, gate int32, tasks []swarm.Task) {
	m.gates.arrive(now, gate, tasks)
}

// Digest implements swarm.Mechanism.
func (m *mechanism) Digest(now quantity.Instant, gate int32, d *swarm.Digest) {
	m.gates.digest(now, gate, d)
}

// Expired implements swarm.Mechanism.
func (m *mechanism) Expired(_ quantity.Instant, t swarm.Task) { m.gates.expired(t.ID) }

// Report implements swarm.Mechanism.
func (m *mechanism) Report(now quantity.Instant, zone int32, r swarm.Report) {
	m.zones.report(now, zone, r)
}

// Tell implements swarm.Teller.
func (m *mechanism) Tell(now quantity.Instant, z int32, d *swarm.Digest) bool {
	return m.zones.tell(now, z, d)
}

// Changed implements swarm.Mechanism.
func (m *mechanism) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) { m.nodes.changed(node) }

// Reset implements swarm.Mechanism.
func (m *mechanism) Reset(now quantity.Instant, z int32) {
	m.nodes.forget(z)
	m.zones.reset(now, z)
}
