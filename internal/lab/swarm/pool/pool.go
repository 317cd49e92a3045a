// Package pool is what a scheduler believes to be free of many nodes, indexed by size.
package pool

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Pool is sets of free slices of the nodes [first, first+n), indexed by class, so that a draw among all nodes with a free slice of a size
// costs the same whatever n is. At first all is free.
type Pool struct {
	c     *swarm.Cluster
	first int32
	free  []uint8
	// lists are by class the nodes with a free slice of just that class, in no order; at is each node's place in it plus 1.
	lists, at [swarm.MaxClasses][]int32
}

// New makes one.
func New(c *swarm.Cluster, first int32, n int) *Pool {
	p := &Pool{c: c, first: first, free: make([]uint8, n)}
	for class := range c.Classes {
		p.at[class] = make([]int32, n)
	}
	for i := range int32(n) {
		p.Set(first+i, c.All(first+i))
	}
	return p
}

// Free is what is believed of a node.
func (p *Pool) Free(node int32) uint8 { return p.free[node-p.first] }

// Set is what is believed of a node from now on.
func (p *Pool) Set(node int32, free uint8) {
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
func (p *Pool) Has(class uint8) bool {
	for ; int(class) < len(p.c.Classes); class++ {
		if len(p.lists[class]) > 0 {
			return true
		}
	}
	return false
}

// Pick draws one of the nodes that have a free slice of the smallest size that is large enough and free anywhere; -1 if none is.
func (p *Pool) Pick(s *prng.Stream, class uint8) int32 {
	for ; int(class) < len(p.c.Classes); class++ {
		if n := len(p.lists[class]); n > 0 {
			return p.lists[class][s.IntN(n)]
		}
	}
	return -1
}

// Take marks the slice as taken that a node would give to a class; -1 if none is free.
func (p *Pool) Take(node int32, class uint8) int8 {
	slot := p.c.Best(node, p.Free(node), class)
	if slot >= 0 {
		p.Set(node, p.Free(node)&^(1<<slot))
	}
	return slot
}
