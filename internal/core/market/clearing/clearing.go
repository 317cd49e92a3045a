// Package clearing decides which of the variants bid for a window win it: weighted interval scheduling, exact, with what
// it does not decide by itself stated with each function (JASDA, arXiv 2510.14599, policy-driven clearing; docs/adr).
// Everything is integers, the outcome does not depend on the order of the bids, and nothing is allocated once warm.
//
// Clear is the plain routine. It stays right as long as two bids of one job overlap in time or do different work, which
// Conflict verifies (in the tests). Exclusive and Joint are for what the plain routine can not see: at most one bid of a job in a window,
// and the same work bid for in several windows. Both are NP-hard, so both say how far from the best they may be.
package clearing

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
)

// Clearer clears. It holds buffers that it uses again; the zero value is ready. Results are valid until the next call. Not
// for concurrent use.
type Clearer struct {
	order   order
	rows    []row
	best    []int64 // best[j] is the most that the first j rows are worth together
	wonRows []int32 // what Clear or Around took, as rows, in order
	won     []int32
	fixed   fixed
	contest contest
	prices  pricing
	joint   joint
	count   int // bids of the latest Clear or Around; -1 after anything else, whose winners have no exact price
}

// joint is the scratch space of Joint.
type joint struct {
	flat  []Bid   // the bids of all windows on one axis of time, by group instead of job
	ends  []int32 // where each window's bids end in flat
	order []int32 // flat by (Job, Work), to number the groups
	used  []bool  // by group
	part  []Bid
	seq   []int32 // what clearing one after another sells, in flat
	place []int32 // by index in flat: its row
	fixed []int32
	won   [][]int32
	stand []At
}

// pricing is the scratch space of Prices.
type pricing struct {
	seat    []int32  // by job: its place among the winners, -1
	winners []winner // jobs that won, in order of their first bid
	cuts    []int64  // the cuts of those that have one, in order
	owner   []int32  // whose cut it is, as a place in winners
	after   []int64  // after[i]: the most that rows from place i by start on are worth
	next    []int32  // by row: the place by start of the first row that starts at or after its end
	below   []int32  // by row: how many cuts are before its end
	reach   []int64  // level by level: the best plan that crosses the cuts [k, k + 1<<level)
	without []int64
	paid    []int64
}

// winner is a job that won.
type winner struct {
	latest, earliest int64 // start and end of all its bids: they all overlap at latest if it is before earliest
	weight           int64 // that it won with
	price            int64
	share, charged   int64 // of weight and of price, seen so far
	first            int32 // its first row
	cut              int32 // place in cuts, -1 for none
}

// Clear finds disjoint bids of the greatest total weight (weighted interval scheduling; Kleinberg and Tardos, "Algorithm
// Design", 6.1) in O(M log M). It returns their indices in order of start, and that weight. Among plans of equal weight
// the one is taken that leaves out what comes last by (End, Job, ID). A bid outside its bounds, empty or worth nothing is
// not chosen.
func (c *Clearer) Clear(bids []Bid) (won []int32, value int64) {
	c.fixed.clear()
	c.load(bids, false)
	return c.plain(bids)
}

// load makes rows of the sound bids that nothing fixed is in the way of, in order of End. Of those that end together the
// plain routine finds the least by itself; others want them in order of (Job, ID) too.
func (c *Clearer) load(bids []Bid, ties bool) {
	if len(bids) > MaxBids { // the figures are boxed only when they are used
		invariant.Check(false, "clearing: %d bids at once; at most %d", len(bids), MaxBids)
	}
	c.order.byEnd(bids, &c.fixed)
	if ties {
		c.order.ties(bids)
	}
	c.rows = sized(c.rows, len(c.order.keys))
	for j, key := range c.order.keys {
		b := &bids[key&indexMask]
		c.rows[j] = row{
			start: b.Start, end: b.End, weight: b.Weight,
			before: c.order.upTo(b.Start), bid: int32(key & indexMask), group: b.Job,
		}
	}
}

// plain is the exact routine over the rows.
func (c *Clearer) plain(bids []Bid) (won []int32, value int64) {
	c.best = sized(c.best, len(c.rows)+1)
	c.best[0] = 0
	for j := range c.rows {
		r := &c.rows[j]
		c.best[j+1] = max(c.best[j], r.weight+c.best[r.before])
	}
	c.wonRows = c.wonRows[:0]
	for j := len(c.rows); j > 0; {
		if c.best[j] == c.best[j-1] {
			j--
			continue
		}
		took := c.least(bids, j-1)
		c.wonRows = append(c.wonRows, took)
		j = int(c.rows[took].before)
	}
	slices.Reverse(c.wonRows)
	c.won = c.won[:0]
	for _, j := range c.wonRows {
		c.won = append(c.won, c.rows[j].bid)
	}
	c.count = len(bids)
	return c.won, c.best[len(c.rows)]
}

// least is the first by (Job, ID) of the rows that end with row j and would do as well. Those before j do not: it was the
// first to reach this value.
func (c *Clearer) least(bids []Bid, j int) int32 {
	least := j
	for k := j + 1; k < len(c.rows) && c.rows[k].end == c.rows[j].end; k++ {
		r := &c.rows[k]
		if r.weight+c.best[r.before] == c.best[j+1] && compare(&bids[r.bid], &bids[c.rows[least].bid]) < 0 {
			least = k
		}
	}
	return int32(least)
}

// Around clears around bids that are fixed first (those of jobs that starve), in the order given: one is kept if it is not empty and
// overlaps none that is kept already; its weight may be 0, and a repeated index has no effect. The rest is exact, as in Clear. won includes
// those kept, stand lists them alone, both in order of start; value is the weight of all of won. An index that is no bid is skipped.
func (c *Clearer) Around(bids []Bid, list []int32) (won, stand []int32, value int64) {
	c.fixed.set(bids, list, false)
	c.load(bids, false)
	_, value = c.plain(bids)
	return c.withFixed(bids), c.fixed.index, value + c.fixed.value
}

// withFixed adds what stands to won.
func (c *Clearer) withFixed(bids []Bid) []int32 {
	if len(c.fixed.index) > 0 {
		c.won = append(c.won, c.fixed.index...)
		slices.SortFunc(c.won, func(i, j int32) int { return int(bids[i].Start - bids[j].Start) })
	}
	return c.won
}
