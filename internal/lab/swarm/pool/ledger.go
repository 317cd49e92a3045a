package pool

import "sluice.dev/sluice/internal/lab/swarm"

// Ledger is a Pool of nodes that tell every change, and of the orders that are under way to them: a slice that was given away and
// of which the node does not know yet is not free, whatever the node says.
type Ledger struct {
	*Pool
	told, pending []uint8
	of            []swarm.TaskID // by node and slice: whose order is pending
}

// NewLedger makes one of the nodes [first, first+n).
func NewLedger(c *swarm.Cluster, first int32, n int) *Ledger {
	l := &Ledger{Pool: New(c, first, n), told: make([]uint8, n), pending: make([]uint8, n), of: make([]swarm.TaskID, n*swarm.MaxSlots)}
	copy(l.told, l.free)
	return l
}

// Order gives a slice of the node to a task; -1 if none is free.
func (l *Ledger) Order(node int32, t swarm.TaskID, class uint8) int8 {
	slot := l.Take(node, class)
	if slot >= 0 {
		i := node - l.first
		l.pending[i] |= 1 << slot
		l.of[int(i)*swarm.MaxSlots+int(slot)] = t
	}
	return slot
}

// Told is what a node says is free.
func (l *Ledger) Told(node int32, free uint8) {
	i := node - l.first
	l.told[i] = free
	l.Set(node, free&^l.pending[i])
}

// Pending says whether an order is not settled.
func (l *Ledger) Pending(node int32, slot int8, t swarm.TaskID) bool {
	return l.of[int(node-l.first)*swarm.MaxSlots+int(slot)] == t
}

// Settle ends an order: the node has acted on it, or never will. It is false if the order was settled before.
func (l *Ledger) Settle(node int32, slot int8, t swarm.TaskID) bool {
	i := node - l.first
	of := &l.of[int(i)*swarm.MaxSlots+int(slot)]
	if *of != t {
		return false
	}
	*of = 0
	l.pending[i] &^= 1 << slot
	l.Set(node, l.told[i]&^l.pending[i])
	return true
}
