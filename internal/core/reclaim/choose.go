package reclaim

import (
	"cmp"
	"slices"
	"time"
)

// Cost of stopping a subjob: how much of its work is done again, and how long it would still have run. The first counts before the second.
// Neither is negative.
type Cost struct{ Lost, Left time.Duration }

// Compare orders costs, the least first.
func (c Cost) Compare(d Cost) int {
	return cmp.Or(cmp.Compare(c.Lost, d.Lost), cmp.Compare(c.Left, d.Left))
}

// Plus is both together.
func (c Cost) Plus(d Cost) Cost { return Cost{c.Lost + d.Lost, c.Left + d.Left} }

// toll is what several subjobs cost, and how many they are: of what costs the same the fewest are stopped.
type toll struct {
	Cost
	stops int
}

func (t toll) compare(o toll) int {
	return cmp.Or(t.Cost.Compare(o.Cost), cmp.Compare(t.stops, o.stops))
}

func (t toll) plus(o toll) toll { return toll{t.Cost.Plus(o.Cost), t.stops + o.stops} }

// Piece is a subjob that could be stopped: how much of each thing that is short is free then, and what that costs.
type Piece struct {
	Frees []int64
	Cost
}

// most bounds how many sets are looked at. Within it what Choose picks is the cheapest; beyond it is the cheapest of those.
const most = 1 << 16

// Choose picks the cheapest pieces that together free as much of each thing as is short, of those of equal cost the fewest. It returns
// their places, rising; false if not even all of them do. All Frees are as long as short; what is not positive there is not short.
func Choose(short []int64, pieces []Piece) (chosen []int, cost Cost, ok bool) {
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
	c.from(0, Cost{})
	slices.Sort(c.best)
	return c.best, c.cost, c.found
}

// chooser looks at sets of pieces in order of cost, one piece after the other.
type chooser struct {
	pieces []Piece
	// order are the places of those that help, the cheapest first; reach is what those from each on free together.
	order []int
	reach [][]int64
	// left is what is short beside those taken; skipped were not.
	left           []int64
	taken, skipped []int
	looks          int

	found bool
	best  []int
	cost  Cost
}

// helps says whether a piece frees anything that is short.
func (c *chooser) helps(i int) bool {
	for d, n := range c.pieces[i].Frees {
		if n > 0 && c.left[d] > 0 {
			return true
		}
	}
	return false
}

func (c *chooser) from(k int, cost Cost) {
	if c.looks++; c.looks > most && c.found {
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
	// What frees no more than a cheaper one that was skipped is in no set that is cheaper with it.
	if !slices.ContainsFunc(c.skipped, func(j int) bool { return covers(c.pieces[j].Frees, c.pieces[i].Frees) }) {
		c.taken = append(c.taken, i)
		c.take(i, -1)
		c.from(k+1, cost.Plus(c.pieces[i].Cost))
		c.take(i, 1)
		c.taken = c.taken[:len(c.taken)-1]
	}
	c.skipped = append(c.skipped, i)
	c.from(k+1, cost)
	c.skipped = c.skipped[:len(c.skipped)-1]
}

func (c *chooser) take(i int, sign int64) {
	for d, n := range c.pieces[i].Frees {
		c.left[d] += sign * n
	}
}

// covers says whether a frees at least as much of everything as b.
func covers(a, b []int64) bool {
	for d := range b {
		if a[d] < b[d] {
			return false
		}
	}
	return true
}
