package reclaim

import (
	"cmp"
	"slices"
	"time"
)

// Cost of stopping a subjob: the work that has to be repeated, and how long it would still have run. Lost is compared first. Neither is
// negative.
type Cost struct{ Lost, Left time.Duration }

// Compare orders costs, the lowest first.
func (c Cost) Compare(d Cost) int {
	return cmp.Or(cmp.Compare(c.Lost, d.Lost), cmp.Compare(c.Left, d.Left))
}

// Plus is the sum.
func (c Cost) Plus(d Cost) Cost { return Cost{c.Lost + d.Lost, c.Left + d.Left} }

// stopCost is the cost of stopping several subjobs, and their number: at equal cost the fewest are stopped.
type stopCost struct {
	Cost
	stops int
}

func (t stopCost) compare(o stopCost) int {
	return cmp.Or(t.Cost.Compare(o.Cost), cmp.Compare(t.stops, o.stops))
}

func (t stopCost) plus(o stopCost) stopCost { return stopCost{t.Cost.Plus(o.Cost), t.stops + o.stops} }

// Piece is a subjob that could be stopped: how much of each resource in short supply that frees, and its cost.
type Piece struct {
	Frees []int64
	Cost
}

// maxSets bounds the search. If it ends within the bound, Choose returns the optimum, otherwise the cheapest set found.
const maxSets = 1 << 16

// Chosen are pieces, by their indices in ascending order, with their cost. Bounded: the search ended at its bound, so there may be cheaper
// ones.
type Chosen struct {
	Pieces []int
	Cost
	Bounded bool
}

// Choose picks the cheapest pieces that together cover the shortage of every resource, and of those sets the smallest; false if all pieces
// together do not cover it. Each Frees is as long as short; an entry of short that is not positive is no shortage.
func Choose(short []int64, pieces []Piece) (chosen Chosen, ok bool) {
	c := &chooser{pieces: pieces, left: slices.Clone(short)}
	for i := range pieces {
		if c.helps(i) {
			c.order = append(c.order, i)
		}
	}
	slices.SortFunc(c.order, func(a, b int) int { return cmp.Or(pieces[a].Compare(pieces[b].Cost), cmp.Compare(a, b)) })
	c.reach = make([][]int64, len(c.order)+1)
	c.reach[len(c.order)] = make([]int64, len(short))
	for k := len(c.order) - 1; k >= 0; k-- {
		c.reach[k] = slices.Clone(c.reach[k+1])
		for d, n := range pieces[c.order[k]].Frees {
			c.reach[k][d] += n
		}
	}
	c.search(0, Cost{})
	slices.Sort(c.best)
	return Chosen{c.best, c.cost, c.sets > maxSets}, c.found
}

// chooser is a depth-first branch and bound over sets of pieces, in order of cost.
type chooser struct {
	pieces []Piece
	// order are the indices of the pieces that help, the cheapest first; reach[k] is what those from order[k] on free together.
	order []int
	reach [][]int64
	// left is the shortage that remains after taken; skipped are the pieces decided against.
	left           []int64
	taken, skipped []int
	sets           int

	found bool
	best  []int
	cost  Cost
}

// helps reports whether a piece frees anything that there is a shortage of.
func (c *chooser) helps(i int) bool {
	for d, n := range c.pieces[i].Frees {
		if n > 0 && c.left[d] > 0 {
			return true
		}
	}
	return false
}

func (c *chooser) search(k int, cost Cost) {
	if c.sets++; c.sets > maxSets && c.found {
		return
	}
	if c.found && cmp.Or(cost.Compare(c.cost), cmp.Compare(len(c.taken), len(c.best))) >= 0 {
		return
	}
	if !slices.ContainsFunc(c.left, func(n int64) bool { return n > 0 }) {
		c.found, c.best, c.cost = true, slices.Clone(c.taken), cost
		return
	}
	for d, n := range c.left {
		if n > c.reach[k][d] {
			return
		}
	}
	i := c.order[k]
	// A piece that frees no more than a cheaper one that was skipped is dominated: it is in no cheaper set.
	if !slices.ContainsFunc(c.skipped, func(j int) bool { return covers(c.pieces[j].Frees, c.pieces[i].Frees) }) {
		c.taken = append(c.taken, i)
		c.take(i, -1)
		c.search(k+1, cost.Plus(c.pieces[i].Cost))
		c.take(i, 1)
		c.taken = c.taken[:len(c.taken)-1]
	}
	c.skipped = append(c.skipped, i)
	c.search(k+1, cost)
	c.skipped = c.skipped[:len(c.skipped)-1]
}

func (c *chooser) take(i int, sign int64) {
	for d, n := range c.pieces[i].Frees {
		c.left[d] += sign * n
	}
}

// covers reports whether a frees at least as much as b of every resource.
func covers(a, b []int64) bool {
	for d := range b {
		if a[d] < b[d] {
			return false
		}
	}
	return true
}
