package peers

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// The protocol.
const (
	spillSubmit uint8 = iota // gate to a node: its driver's own
	// node to its zone's scheduler, or that to another's; A the node or -1, B its free slices, C zones that saw it before; no task: it is
	// over.
	spillOn
	spillAssign // scheduler to a node; C the zones seen
)

// mostSpills is how many zones may see a task before it waits where it is.
const mostSpills = 4

// Spillback is local first: a task is submitted at a node, starts there if there is room, and spills to the scheduler of a
// wider area if there is not. After Moritz et al., "Ray: a distributed framework for emerging AI applications" (OSDI 2018), section
// 4.2: the bottom-up scheduler, with a global scheduler for each zone ("we can instantiate more replicas").
func Spillback() swarm.Kind {
	return swarm.Kind{
		Name: "spillback", Summary: "local first with spillback to the scheduler of the zone (Ray, OSDI 2018)", Reports: true,
		Messages: []swarm.MessageKind{{Name: "submit", Bytes: 64, Hop: true}, {Name: "spill", Bytes: 64},
			{Name: "assign", Bytes: 64, Hop: true}},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			m := &spillback{c: s.Cluster, port: port, seed: s.Seed, zones: make([]spillZone, s.Cluster.Zones)}
			for z := range m.zones {
				m.zones[z] = spillZone{pool: newPool(s.Cluster, int32(z*s.Cluster.PerZone), s.Cluster.PerZone), line: newLine(port),
					draws: prng.New(s.Seed, uint64(z))}
			}
			return m, nil
		},
	}
}

type spillback struct {
	swarm.Deaf
	c     *swarm.Cluster
	port  swarm.Port
	seed  uint64
	zones []spillZone
}

// scheduler of a zone: what its nodes have reported, less what it has sent them since.
type spillZone struct {
	pool  *pool
	line  *line
	draws prng.Stream
}

// Arrive implements swarm.Mechanism.
func (m *spillback) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	s := prng.New(m.seed, tasks[0].Job)
	for i := range tasks {
		m.port.Send(swarm.Message{Kind: spillSubmit, To: m.c.At(int32(s.IntN(m.c.Nodes()))), Task: tasks[i].ID})
	}
}

// Hear implements swarm.Mechanism.
func (m *spillback) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case spillSubmit, spillAssign:
		node := int32(in.To)
		out := m.port.Start(node, in.Task)
		if out == swarm.Started {
			return
		}
		answer := swarm.Message{Kind: spillOn, To: m.c.ZoneAt(m.c.Zone(node)), A: node, B: int32(m.port.Free(node)), C: in.C}
		if out == swarm.Full {
			answer.Task = in.Task
		} else if in.Kind == spillSubmit {
			return // nobody counted on it
		}
		m.port.Send(answer)
	case spillOn:
		_, zone := m.c.Whose(in.To)
		z := &m.zones[zone]
		if in.A >= 0 {
			z.pool.Set(in.A, uint8(in.B))
		}
		if t, ok := m.port.Task(in.Task); ok && t.Deadline > now {
			m.assign(zone, t, in.C)
		}
	}
}

// assign sends a task to a node of the zone, on to another zone, or lets it wait.
func (m *spillback) assign(zone int32, t swarm.Task, seen int32) {
	z := &m.zones[zone]
	if node := z.pool.Pick(&z.draws, t.Class); node >= 0 {
		z.pool.Take(node, t.Class)
		m.port.Send(swarm.Message{Kind: spillAssign, To: m.c.At(node), Task: t.ID, C: seen})
		return
	}
	if seen+1 < mostSpills && m.c.Zones > 1 {
		other := int32(z.draws.IntN(m.c.Zones - 1))
		if other >= zone {
			other++
		}
		m.port.Send(swarm.Message{Kind: spillOn, To: m.c.ZoneAt(other), Task: t.ID, A: -1, C: seen + 1})
		return
	}
	z.line.Put(t)
}

// Report implements swarm.Mechanism: what waits in the zone goes to what has become free.
func (m *spillback) Report(now quantity.Instant, zone int32, r swarm.Report) {
	z := &m.zones[zone]
	z.pool.Set(r.Node, r.Free)
	for z.line.Len() > 0 {
		t, ok := z.line.Take(now, z.pool.Has)
		if !ok {
			return
		}
		m.assign(zone, t, mostSpills)
	}
}

// Reset implements swarm.Mechanism: the zone's scheduler has forgotten who waited.
func (m *spillback) Reset(_ quantity.Instant, zone int32) {
	z := &m.zones[zone]
	z.line = newLine(m.port)
	for i := range int32(m.c.PerZone) {
		z.pool.Set(zone*int32(m.c.PerZone)+i, 0) // until it reports
	}
}
