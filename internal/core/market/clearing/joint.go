package clearing

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
)

// At names a bid of one of several windows.
type At struct{ Window, Bid int32 }

// Plan is what Joint found. Its slices are valid until the next call.
type Plan struct {
	// Won are indices by window, each in order of start, with what is fixed; Stand alone which of the fixed ones do.
	Won   [][]int32
	Stand []At
	// Value is the weight of Won; no plan is worth more than Bound, which is at most twice Value.
	Value, Bound int64
	// Sequential is what clearing one window after another is worth, in the order given: at most Value.
	Sequential int64
	// Independent is the sum of what each window alone could reach, the same work sold in several: at least Bound.
	Independent int64
	// Exact: Value is Bound, and there is no better plan. Always so up to Exhaustive bids.
	Exact bool
}

// Regret is what clearing one after another loses against clearing together, 0 or more. The best plan of all is at most
// Bound - Value better still.
func (p Plan) Regret() int64 { return p.Value - p.Sequential }

// Joint clears windows that are open in the same instant together: what overlaps in one window excludes each other there,
// and of the bids of one job with the same Work at most one wins anywhere, for the same work sold in two windows is sold
// twice. The listed bids are fixed first, as in Around, and their work is not sold again. The windows' times, from the
// first start to the last end, must add up to at most Horizon. That a job's different works do not overlap is Conflict's
// business, over the bids of all windows.
//
// With its times laid end to end this is one window with at most one bid of a group (a job and a work): what was said of
// Exclusive holds, with groups for jobs. One after another is offered as a plan, so joint is never worse.
func (c *Clearer) Joint(windows [][]Bid, list []At) Plan {
	c.count = -1
	c.flatten(windows)
	q, x := &c.joint, &c.contest
	q.fixed = q.fixed[:0]
	for _, at := range list {
		if at.Window >= 0 && int(at.Window) < len(windows) && at.Bid >= 0 && int(at.Bid) < len(windows[at.Window]) {
			q.fixed = append(q.fixed, q.from(at.Window)+at.Bid)
		}
	}
	c.fixed.set(q.flat, q.fixed, true)
	groups := jobs(q.flat)
	plan := Plan{Sequential: c.fixed.value + c.sequence(groups)}

	c.load(q.flat, true)
	q.place = sized(q.place, len(q.flat))
	for j := range c.rows {
		q.place[c.rows[j].bid] = int32(j)
	}
	for k, i := range q.seq {
		q.seq[k] = q.place[i]
	}
	x.set(c.rows, groups)
	x.suggest(q.seq)
	x.solve()
	c.won = c.won[:0]
	for _, j := range x.pick {
		c.won = append(c.won, c.rows[j].bid)
	}
	plan.Won, plan.Stand = c.byWindow(c.withFixed(q.flat), len(windows))
	plan.Value, plan.Bound, plan.Independent = x.value+c.fixed.value, x.bound+c.fixed.value, x.plain+c.fixed.value
	plan.Exact = plan.Value == plan.Bound
	return plan
}

// from is where the bids of window w begin in flat.
func (q *joint) from(w int32) int32 {
	if w == 0 {
		return 0
	}
	return q.ends[w-1]
}

// flatten lays the windows' times end to end and numbers the groups by (Job, Work).
func (c *Clearer) flatten(windows [][]Bid) {
	q := &c.joint
	q.flat, q.ends, q.order = q.flat[:0], q.ends[:0], q.order[:0]
	at := int64(0)
	for _, bids := range windows {
		first, last := int64(Horizon), int64(0)
		for i := range bids {
			if bids[i].fits() {
				first, last = min(first, bids[i].Start), max(last, bids[i].End)
			}
		}
		for i := range bids {
			b := bids[i]
			if b.fits() {
				b.Start, b.End = b.Start-first+at, b.End-first+at
				q.order = append(q.order, int32(len(q.flat)))
			} else {
				b = Bid{}
			}
			q.flat = append(q.flat, b)
		}
		at += max(0, last-first)
		q.ends = append(q.ends, int32(len(q.flat)))
	}
	invariant.Check(at <= Horizon, "clearing: the windows of a joint clearing have more time together than the horizon")
	slices.SortFunc(q.order, func(i, j int32) int {
		a, b := &q.flat[i], &q.flat[j]
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Work, b.Work))
	})
	group, job, work := int32(-1), int32(-1), int32(0)
	for _, i := range q.order {
		b := &q.flat[i]
		if b.Job != job || b.Work != work {
			group, job, work = group+1, b.Job, b.Work
		}
		b.Job = group
	}
}

// sequence clears one window after another, leaves what it sells in seq, and returns what that is worth.
func (c *Clearer) sequence(groups int) (value int64) {
	q := &c.joint
	q.used, q.seq = filled(q.used, groups, false), q.seq[:0]
	from := int32(0)
	for _, to := range q.ends {
		q.part = append(q.part[:0], q.flat[from:to]...)
		for i := range q.part {
			if b := &q.part[i]; b.fits() && q.used[b.Job] {
				b.Weight = 0
			}
		}
		c.load(q.part, false)
		won, _ := c.plain(q.part)
		for _, i := range won {
			if b := &q.part[i]; !q.used[b.Job] {
				q.used[b.Job] = true
				q.seq = append(q.seq, from+i)
				value += b.Weight
			}
		}
		from = to
	}
	c.count = -1
	return value
}

// byWindow splits the winners and the fixed bids by window again. won is in the order of flat times, so windows come in order.
func (c *Clearer) byWindow(won []int32, windows int) ([][]int32, []At) {
	q := &c.joint
	for len(q.won) < windows {
		q.won = append(q.won, nil)
	}
	for w := range windows {
		q.won[w] = q.won[w][:0]
	}
	w := int32(0)
	for _, i := range won {
		for i >= q.ends[w] {
			w++
		}
		q.won[w] = append(q.won[w], i-q.from(w))
	}
	q.stand = q.stand[:0]
	w = 0
	for _, i := range c.fixed.index {
		for i >= q.ends[w] {
			w++
		}
		q.stand = append(q.stand, At{Window: w, Bid: i - q.from(w)})
	}
	return q.won[:windows], q.stand
}
