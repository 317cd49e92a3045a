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
	choiceAsk   uint8 = iota // gate to node
	choiceLoad               // node to gate: A the node, B the load there
	choiceJoin               // gate to node
	choiceTired              // timer of the gate: no more answers are waited for
)

// TwoChoices is the power of d choices: a task asks d random nodes how many wait there, and joins the shortest queue. After
// Mitzenmacher, "The power of two choices in randomized load balancing" (IEEE TPDS 12, 2001): with queues of one server each and
// load x the share of nodes with at least k tasks falls from x^k to x^((d^k-1)/(d-1)).
func TwoChoices() swarm.Kind { return Choices("two-choices", 2) }

// Choices is a kind with d choices, 1 at least.
func Choices(name string, d int) swarm.Kind {
	return swarm.Kind{
		Name: name, Summary: "each task joins the shorter of two random nodes' queues (Mitzenmacher, TPDS 2001)",
		Messages: []swarm.MessageKind{{Name: "ask", Bytes: 32, Hop: true}, {Name: "load", Bytes: 24}, {Name: "join", Bytes: 64}},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) {
			return &choices{c: s.Cluster, port: port, seed: s.Seed, d: d, patience: s.LostAfter(),
				queues: queue.NewLists[swarm.TaskID](s.Cluster.Nodes())}, nil
		},
	}
}

type choices struct {
	swarm.Deaf
	c        *swarm.Cluster
	port     swarm.Port
	seed     uint64
	d        int
	patience time.Duration
	// Of the gates, by task.
	asked []chosen
	// Of the nodes.
	queues queue.Lists[swarm.TaskID]
}

// choice is what a gate has heard for a task.
type chosen struct {
	of   swarm.TaskID
	best int32 // node, -1 for none yet
	load int32
	left int32 // answers to come
}

// Arrive implements swarm.Mechanism.
func (m *choices) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) {
	s := prng.New(m.seed, tasks[0].Job)
	for i := range tasks {
		t := &tasks[i]
		if m.d == 1 {
			m.port.Send(swarm.Message{Kind: choiceJoin, To: m.c.At(m.draw(&s, t.Class)), Task: t.ID})
			continue
		}
		for len(m.asked) <= t.ID.Slot() {
			m.asked = append(m.asked, chosen{})
		}
		m.asked[t.ID.Slot()] = chosen{of: t.ID, best: -1, left: int32(m.d)}
		for range m.d {
			m.port.Send(swarm.Message{Kind: choiceAsk, To: m.c.At(m.draw(&s, t.Class)), Task: t.ID})
		}
		m.port.After(m.patience, swarm.Message{Kind: choiceTired, Task: t.ID})
	}
}

// draw is a random node that has a slice large enough.
func (m *choices) draw(s *prng.Stream, class uint8) int32 {
	for {
		if node := int32(s.IntN(m.c.Nodes())); m.c.Fits(node, class) != 0 {
			return node
		}
	}
}

// Hear implements swarm.Mechanism.
func (m *choices) Hear(now quantity.Instant, in swarm.Message) {
	switch in.Kind {
	case choiceAsk:
		node := int32(in.To)
		if t, ok := m.port.Task(in.Task); ok {
			waits := m.queues.Len(node) - m.c.Room(node, m.port.Free(node), t.Class)
			m.port.Send(swarm.Message{Kind: choiceLoad, To: in.From, Task: in.Task, A: node, B: int32(waits)})
		}
	case choiceLoad:
		x := &m.asked[in.Task.Slot()]
		if x.of != in.Task {
			return
		}
		if x.best < 0 || in.B < x.load {
			x.best, x.load = in.A, in.B
		}
		if x.left--; x.left == 0 {
			m.join(x)
		}
	case choiceJoin:
		node := int32(in.To)
		m.queues.Put(node, in.Task)
		m.serve(now, node)
	}
}

// join sends a task to the best node that has answered, once.
func (m *choices) join(x *chosen) {
	if x.best >= 0 {
		m.port.Send(swarm.Message{Kind: choiceJoin, To: m.c.At(x.best), Task: x.of})
	}
	x.of = 0
}

// Wake implements swarm.Mechanism.
func (m *choices) Wake(_ quantity.Instant, in swarm.Message) {
	if x := &m.asked[in.Task.Slot()]; x.of == in.Task {
		m.join(x)
	}
}

// Changed implements swarm.Mechanism.
func (m *choices) Changed(now quantity.Instant, node int32, _ swarm.TaskID) { m.serve(now, node) }

// serve starts what fits, in order.
func (m *choices) serve(_ quantity.Instant, node int32) {
	if m.queues.Len(node) == 0 || m.port.Free(node) == 0 {
		return
	}
	m.queues.Sift(node, look, func(t swarm.TaskID) (drop, more bool) {
		out := m.port.Start(node, t)
		return out != swarm.Full, m.port.Free(node) != 0
	})
}

// Reset implements swarm.Mechanism.
func (m *choices) Reset(_ quantity.Instant, zone int32) {
	for i := range int32(m.c.PerZone) {
		m.queues.Clear(zone*int32(m.c.PerZone) + i)
	}
}
