package peers

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/queue"
)

// The protocol.
const (
	sparrowReserve uint8 = iota // gate to node: X the job, A the class
	sparrowReady                // node to gate: X the job, A the slice that is held for it, B the hold
	sparrowLaunch               // gate to node: Task, or none if the job has no more; A and B as in ready
	sparrowLapses               // timer of the node: A and B as in ready
)

// Sparrow is batch sampling with late binding: a job of m tasks leaves reservations at d*m random nodes, and a node with room
// asks the job's scheduler for a task when a reservation comes to the head of its queue. After Ousterhout et al., "Sparrow:
// distributed, low latency scheduling" (SOSP 2013), sections 3 and 4.
func Sparrow() swarm.Kind { return SparrowOf("sparrow", 2) }

// SparrowOf is a kind with d probes for each task.
func SparrowOf(name string, d int) swarm.Kind {
	return swarm.Kind{
		Name: name, Summary: "batch sampling, two probes a task, with late binding (Sparrow, SOSP 2013)",
		Messages: []swarm.MessageKind{{Name: "reserve", Bytes: 40, Hop: true}, {Name: "ready", Bytes: 32}, {Name: "launch", Bytes: 64}},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			n := s.Cluster.Nodes()
			return &sparrow{
				c: s.Cluster, port: port, seed: s.Seed, d: d, patience: s.LostAfter(),
				queues: queue.NewLists[sparrowReservation](n), holds: make([]uint32, n*swarm.MaxSlots),
			}, nil
		},
	}
}

type sparrow struct {
	swarm.Deaf
	c        *swarm.Cluster
	port     swarm.Port
	seed     uint64
	d        int
	patience time.Duration // of a node, for an answer

	// Of the gates: jobs with tasks to launch, and by task which is its.
	jobs  []sparrowJob
	spare []uint32
	of    []uint64

	// Of the nodes. holds numbers the holds of each slice; an odd one is open.
	queues queue.Lists[sparrowReservation]
	holds  []uint32
}

// job is tasks that are not launched. Its id is its place, and above 32 bits how many had it before.
type sparrowJob struct {
	id    uint64
	tasks []swarm.TaskID
}

// reservation is a job's place in a node's queue.
type sparrowReservation struct {
	job   uint64
	gate  swarm.Place
	class uint8
}

// Arrive implements swarm.Mechanism.
func (m *sparrow) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	var i uint32
	if n := len(m.spare); n > 0 {
		i, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		i = uint32(len(m.jobs))
		m.jobs = append(m.jobs, sparrowJob{id: uint64(i)})
	}
	j := &m.jobs[i]
	for k := range tasks {
		j.tasks = append(j.tasks, tasks[k].ID)
		for len(m.of) <= tasks[k].ID.Slot() {
			m.of = append(m.of, 0)
		}
		m.of[tasks[k].ID.Slot()] = j.id
	}
	s := prng.New(m.seed, tasks[0].Job)
	class, last := tasks[0].Class, int32(-1)
	for range m.d * len(tasks) {
		node := m.draw(&s, class, last)
		m.port.Send(swarm.Message{Kind: sparrowReserve, To: m.c.At(node), X: j.id, A: int32(class)})
		last = node
	}
}

// draw is a random node that has a slice large enough, and if there is more than one node not the last.
func (m *sparrow) draw(s *prng.Stream, class uint8, last int32) int32 {
	for tries := 0; ; tries++ {
		if node := int32(s.IntN(m.c.Nodes())); m.c.Fits(node, class) != 0 && (node != last || tries > 64) {
			return node
		}
	}
}

// Hear implements swarm.Mechanism.
func (m *sparrow) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case sparrowReserve:
		node := int32(in.To)
		m.queues.Put(node, sparrowReservation{job: in.X, gate: in.From, class: uint8(in.A)})
		m.serve(node)
	case sparrowReady:
		m.port.Send(swarm.Message{Kind: sparrowLaunch, To: in.From, Task: m.next(now, in.X), A: in.A, B: in.B})
	case sparrowLaunch:
		node := int32(in.To)
		hold := &m.holds[int(node)*swarm.MaxSlots+int(in.A)]
		if *hold != uint32(in.B) {
			return // it has lapsed
		}
		*hold++
		if in.Task == 0 || m.port.StartOn(node, int8(in.A), in.Task) != swarm.Started {
			m.port.Release(node, int8(in.A))
			m.serve(node)
		}
	}
}

// next is the first task of a job that is not launched and whose deadline has not passed, 0 if there is none.
func (m *sparrow) next(now quantity.Instant, id uint64) swarm.TaskID {
	j := &m.jobs[uint32(id)]
	if j.id != id {
		return 0
	}
	for len(j.tasks) > 0 {
		id := j.tasks[0]
		m.drop(j, 0)
		if t, ok := m.port.Task(id); ok && t.Deadline > now {
			return id
		}
	}
	return 0
}

// drop takes a task out of a job, and ends the job with the last.
func (m *sparrow) drop(j *sparrowJob, i int) {
	j.tasks = append(j.tasks[:i], j.tasks[i+1:]...)
	if len(j.tasks) == 0 {
		m.spare = append(m.spare, uint32(j.id))
		j.id += 1 << 32
	}
}

// Expired implements swarm.Mechanism.
func (m *sparrow) Expired(_ quantity.Instant, t swarm.Task) {
	id := m.of[t.ID.Slot()]
	j := &m.jobs[uint32(id)]
	if j.id != id {
		return
	}
	for i := range j.tasks {
		if j.tasks[i] == t.ID {
			m.drop(j, i)
			return
		}
	}
}

// Changed implements swarm.Mechanism.
func (m *sparrow) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) { m.serve(node) }

// serve holds slices for the reservations that fit, in order, and asks for their tasks.
func (m *sparrow) serve(node int32) {
	if m.queues.Len(node) == 0 || m.port.Free(node) == 0 {
		return
	}
	m.queues.Sift(node, look, func(r sparrowReservation) (drop, more bool) {
		slot := m.port.Hold(node, r.class)
		if slot < 0 {
			return false, true
		}
		hold := &m.holds[int(node)*swarm.MaxSlots+int(slot)]
		*hold++
		out := swarm.Message{Kind: sparrowReady, To: r.gate, X: r.job, A: int32(slot), B: int32(*hold)}
		m.port.Send(out)
		out.Kind = sparrowLapses
		m.port.After(m.patience, out)
		return true, m.port.Free(node) != 0
	})
}

// Wake implements swarm.Mechanism: no answer has come.
func (m *sparrow) Wake(_ quantity.Instant, in swarm.Message) {
	node := int32(in.To)
	if hold := &m.holds[int(node)*swarm.MaxSlots+int(in.A)]; *hold == uint32(in.B) {
		*hold++
		m.port.Release(node, int8(in.A))
		m.serve(node)
	}
}

// Reset implements swarm.Mechanism.
func (m *sparrow) Reset(_ quantity.Instant, zone int32) {
	for i := range int32(m.c.PerZone) {
		node := zone*int32(m.c.PerZone) + i
		m.queues.Clear(node)
		for slot := range swarm.MaxSlots {
			if hold := &m.holds[int(node)*swarm.MaxSlots+slot]; *hold%2 == 1 {
				*hold++
			}
		}
	}
}
