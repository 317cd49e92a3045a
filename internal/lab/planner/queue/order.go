package queue

import (
	"cmp"
	"slices"
)

// Order is waiting tasks by rank, the lowest first, and of one rank in the order of their arrival. The zero value is empty.
// To put one in or take one out moves those behind it; nothing allocates once it has grown.
type Order struct {
	line  []ranked
	ranks []int64 // by task
}

type ranked struct {
	rank int64
	Place
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Seq, b.Seq))
}

// Len is how many wait.
func (o *Order) Len() int { return len(o.line) }

// First is the task of the lowest rank; there must be one.
func (o *Order) First() Place { return o.At(0) }

// Put adds a task that is not there.
func (o *Order) Put(p Place, rank int64) {
	for int(p.ID) >= len(o.ranks) {
		o.ranks = append(o.ranks, 0)
	}
	o.ranks[p.ID] = rank
	q := ranked{rank, p}
	i, _ := slices.BinarySearchFunc(o.line, q, ranked.compare)
	o.line = slices.Insert(o.line, i, q)
}

// Remove takes out a task that is there.
func (o *Order) Remove(p Place) {
	i, _ := slices.BinarySearchFunc(o.line, ranked{o.ranks[p.ID], p}, ranked.compare)
	o.line = slices.Delete(o.line, i, i+1)
}

// At is the task in a place of the line, from 0 on. A removed task leaves its place to the next.
func (o *Order) At(i int) Place { return o.line[i].Place }

// Rerank gives every task a rank anew.
func (o *Order) Rerank(rank func(Place) int64) {
	for i := range o.line {
		q := &o.line[i]
		q.rank = rank(q.Place)
		o.ranks[q.ID] = q.rank
	}
	slices.SortFunc(o.line, ranked.compare)
}
