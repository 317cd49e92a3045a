// Package clearing decides which of the variants bid for a window win it: weighted interval scheduling, exact, with what
// it does not decide by itself stated with each function (JASDA, arXiv 2510.14599, policy-driven clearing; docs/adr).
// Everything is integers, the outcome does not depend on the order of the bids, and nothing is allocated once warm.
//
// Clear is the plain routine. It stays right as long as two bids of one job overlap in time or do different work, which
// Conflict verifies. Exclusive and Joint are for what the plain routine can not see: at most one bid of a job in a window,
// and the same work bid for in several windows. Both are NP-hard, so both say how far from the best they may be.
package clearing

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
)

// Bid is one variant as clearing sees it.
type Bid struct {
	// Start and End, half-open, in any unit of time, relative to anything: 0 to 1<<40.
	Start, End int64
	// Weight, at least 0. Sums of all weights must stay below 1<<62.
	Weight int64
	// Job is the owner, a dense number from 0 on. Bids are compared by (Job, ID) where everything else is equal.
	Job, ID int32
	// Work names what the bid would do, any number. Only Joint looks at it: bids of one job with the same Work exclude each
	// other in all windows.
	Work int32
}

const (
	// Horizon is the latest End.
	Horizon = 1 << 40
	// MaxBids is how many bids are cleared at once; more are a broken invariant.
	MaxBids = 1 << indexBits
)

// sound says whether b can win at all: it is not empty, within its bounds, and worth something.
func (b *Bid) sound() bool {
	return b.fits() && b.Weight > 0
}

// fits says whether b could be fixed: as sound, but it may be worth nothing.
func (b *Bid) fits() bool {
	return b.Start >= 0 && b.Start < b.End && b.End <= Horizon && b.Weight >= 0 && b.Job >= 0
}

// overlaps says whether b and d share an instant.
func (b *Bid) overlaps(d *Bid) bool { return b.Start < d.End && d.Start < b.End }

// row is a sound bid in its place by End.
type row struct {
	start, end, weight int64
	// before is how many rows end at or before start: they are compatible with this one, later rows are not.
	before int32
	// bid is its index, group its job; in Joint its job and work.
	bid, group int32
}

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
	rules   rules
	count   int // bids of the latest Clear or Around; -1 after anything else, whose winners have no exact price
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
	if len(bids) > MaxBids { // the figures are boxed only when they are said
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

// sized is s with length n and what was in it in no particular state, grown only when it must.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// filled is s with length n and v everywhere.
func filled[T any](s []T, n int, v T) []T {
	s = sized(s, n)
	for i := range s {
		s[i] = v
	}
	return s
}
