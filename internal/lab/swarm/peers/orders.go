package peers

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// orders are slices that a center gives to tasks, on nodes that report every change. An order is resent until its node has answered: the
// node alone knows whether the task runs there. Invariant: a task is ordered to another node only after the last one has refused.
type orders struct {
	swarm.Deaf
	c        *swarm.Cluster
	port     swarm.Port
	patience time.Duration // for the answer to an order
	kinds    orderKinds
	memory   memory // of the nodes
}

// orderKinds are the messages of a protocol that orders take.
type orderKinds struct {
	// start: center to node; A the slice that is meant.
	start uint8
	// state: node to center; A the node, B what is free, C the slice of an order that is settled or -1, X 1 if its task was not started.
	state uint8
	// lapses: timer of the center; the order of Task at node A, slice B was not answered.
	lapses uint8
}

func newOrders(s swarm.Setup, port swarm.Port, kinds orderKinds) orders {
	return orders{c: s.Cluster, port: port, patience: s.LostAfter(), kinds: kinds}
}

// give gives an order.
func (o *orders) give(t swarm.TaskID, node int32, slot int8) {
	o.port.Send(swarm.Message{Kind: o.kinds.start, To: o.c.At(node), Task: t, A: int32(slot)})
	o.port.After(o.patience, swarm.Message{Kind: o.kinds.lapses, Task: t, A: node, B: int32(slot)})
}

// follow is what a node does with one.
func (o *orders) follow(in swarm.Message) {
	node, refused := int32(in.To), uint64(0)
	if !o.memory.Start(o.port, node, in.Task) {
		refused = 1
	}
	o.tell(node, swarm.Message{Task: in.Task, C: in.A, X: refused})
}

// tell reports what is free at a node.
func (o *orders) tell(node int32, out swarm.Message) {
	out.Kind, out.To, out.A, out.B = o.kinds.state, o.c.Center(), node, int32(o.port.Free(node))
	o.port.Send(out)
}

// Changed implements swarm.Mechanism.
func (o *orders) Changed(_ quantity.Instant, node int32, _ swarm.TaskID) {
	o.tell(node, swarm.Message{C: -1})
}

// told records a node's report; it returns whether a task has to be placed elsewhere.
func (o *orders) told(l *ledger, in swarm.Message) bool {
	settled := in.C >= 0 && l.Settle(in.A, int8(in.C), in.Task)
	l.Told(in.A, uint8(in.B))
	return settled && in.X == 1
}

// lapsed says an order again that was not answered. Only the same node may have it: it may run there. When the deadline has passed the
// node may be dead, and gets no more until it speaks; then it is true.
func (o *orders) lapsed(now quantity.Instant, l *ledger, in swarm.Message) bool {
	if !l.Pending(in.A, int8(in.B), in.Task) {
		return false
	}
	if t, ok := o.port.Task(in.Task); ok && t.Deadline > now {
		o.give(in.Task, in.A, int8(in.B))
		return false
	}
	l.Settle(in.A, int8(in.B), in.Task)
	l.Told(in.A, 0)
	return true
}

// memory is what nodes remember of the tasks that they have started, so that an order that comes twice is answered twice and followed
// once. It is kept by task: only the node that has started one looks at its place.
type memory struct{ of []started }

type started struct {
	task swarm.TaskID
	node int32
}

// Start starts a task at the node here, unless that has been done. It is false if the task does not run and has not run there.
func (m *memory) Start(port swarm.Port, node int32, t swarm.TaskID) bool {
	for len(m.of) <= t.Slot() {
		m.of = append(m.of, started{})
	}
	x := &m.of[t.Slot()]
	if *x == (started{t, node}) {
		return true
	}
	if port.Start(node, t) != swarm.Started {
		return false
	}
	*x = started{t, node}
	return true
}
