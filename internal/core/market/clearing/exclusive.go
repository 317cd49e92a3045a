package clearing

// Exclusion is what Exclusive found.
type Exclusion struct {
	// Won are the winners' indices by start, fixed ones too; Stand are the fixed ones among them. Valid until the next call.
	Won, Stand []int32
	// Value is the weight of Won. No plan is worth more than Bound, which is at most twice Value.
	Value, Bound int64
	// Exact: Value is Bound, and there is no better plan. Always so up to Exhaustive bids.
	Exact bool
}

// Exclusive clears as Around does, but sells at most one bid of a job, fixed ones included; so no work is sold twice.
// The problem is NP-hard, so the plan may not be the best: its proven share of the best is one half (twoPhase), its
// measured share is Value / Bound. Of equal plans one is taken by rules that do not depend on the order of bids.
func (c *Clearer) Exclusive(bids []Bid, list []int32) Exclusion {
	c.count = -1
	c.fixed.set(bids, list, true)
	c.load(bids, true)
	x := &c.contest
	x.set(c.rows, jobs(bids))
	x.solve()
	c.won = c.won[:0]
	for _, j := range x.pick {
		c.won = append(c.won, c.rows[j].bid)
	}
	value, bound := x.value+c.fixed.value, x.bound+c.fixed.value
	return Exclusion{Won: c.withFixed(bids), Stand: c.fixed.index, Value: value, Bound: bound, Exact: value == bound}
}
