package peers

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/swarm"
)

// pool is sets of free slices of the nodes [first, first+n), indexed by class, so that a draw among all nodes with a free slice of a size
// costs the same whatever n is. At first all is free.
type pool struct {
	c     *swarm.Cluster
	first int32
	free  []uint8
	// lists are by class the nodes with a free slice of just that class, in no order; at is each node's place in it plus 1.
	lists, at [swarm.MaxClasses][]int32
}

// newPool makes one.
func newPool(c *swarm.Cluster, first int32, n int) *pool {
	p := &pool{c: c, first: first, free: make([]uint8, n)}
	for class := range c.Classes {
		p.at[class] = make([]int32, n)
	}
	for i := range int32(n) {
		p.Set(first+i, c.All(first+i))
	}
	return p
}

// Free is what is believed of a node.
func (p *pool) Free(node int32) uint8 { return p.free[node-p.first] }

// Set is what is believed of a node from now on.
func (p *pool) Set(node int32, free uint8) {
	i := node - p.first
	if p.free[i] == free {
		return
	}
	p.free[i] = free
	for class := range p.c.Classes {
		exact := p.c.Exact(node, uint8(class))
		if exact == 0 {
			continue
		}
		list, at := &p.lists[class], p.at[class]
		switch in := free&exact != 0; {
		case in && at[i] == 0:
			*list = append(*list, node)
			at[i] = int32(len(*list))
		case !in && at[i] != 0:
			last := (*list)[len(*list)-1]
			(*list)[at[i]-1] = last
			at[last-p.first] = at[i]
			*list = (*list)[:len(*list)-1]
			at[i] = 0
		}
	}
}

// Has says whether any node has a free slice that is large enough.
func (p *pool) Has(class uint8) bool {
	for ; int(class) < len(p.c.Classes); class++ {
		if len(p.lists[class]) > 0 {
			return true
		}
	}
	return false
}

// Pick draws one of the nodes that have a free slice of the smallest size that is large enough and free anywhere; -1 if none is.
func (p *pool) Pick(s *prng.Stream, class uint8) int32 {
	for ; int(class) < len(p.c.Classes); class++ {
		if n := len(p.lists[class]); n > 0 {
			return p.lists[class][s.IntN(n)]
		}
	}
	return -1
}

// Take marks the slice as taken that a node would give to a class; -1 if none is free.
func (p *pool) Take(node int32, class uint8) int8 {
	slot := p.c.Best(node, p.Free(node), class)
	if slot >= 0 {
		p.Set(node, p.Free(node)&^(1<<slot))
	}
	return slot
}

// ledger is a pool of nodes that report every change, with the orders under way to them: a slice that was given away, which its node does
// not know yet, is not free, whatever the node reports.
type ledger struct {
	*pool
	told, pending []uint8
	of            []swarm.TaskID // by node and slice: whose order is pending
}

// newLedger makes one of the nodes [first, first+n).
func newLedger(c *swarm.Cluster, first int32, n int) *ledger {
	l := &ledger{pool: newPool(c, first, n), told: make([]uint8, n), pending: make([]uint8, n), of: make([]swarm.TaskID, n*swarm.MaxSlots)}
	copy(l.told, l.free)
	return l
}

// Order gives a slice of the node to a task; -1 if none is free.
func (l *ledger) Order(node int32, t swarm.TaskID, class uint8) int8 {
	slot := l.Take(node, class)
	if slot >= 0 {
		i := node - l.first
		l.pending[i] |= 1 << slot
		l.of[int(i)*swarm.MaxSlots+int(slot)] = t
	}
	return slot
}

// Told records what a node reports as free.
func (l *ledger) Told(node int32, free uint8) {
	i := node - l.first
	l.told[i] = free
	l.Set(node, free&^l.pending[i])
}

// Pending says whether an order is not settled.
func (l *ledger) Pending(node int32, slot int8, t swarm.TaskID) bool {
	return l.of[int(node-l.first)*swarm.MaxSlots+int(slot)] == t
}

// Settle ends an order: the node has acted on it, or never will. It is false if the order was settled before.
func (l *ledger) Settle(node int32, slot int8, t swarm.TaskID) bool {
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
