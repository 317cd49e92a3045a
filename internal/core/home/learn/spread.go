package learn

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Trust is how far a job's declarations are believed: by its own record, and until it has one by its queue's, so that a queue whose jobs
// lie gains nothing by many new ones.
func Trust(own, queue *protocol.Trust) protocol.Trust {
	if own.Seen == 0 {
		return trust.Fresh(*queue)
	}
	return *own
}

// Observe compares what was declared for a subjob with its result, for the job (l) and its queue. An end from outside says nothing about
// either; one of a piece that measured, which planned with a guess of ours, only something about memory. It reports whether anything was
// learned of the queue.
func Observe(
	by *trust.Settings, spec *job.Spec, c *protocol.Claim, r *job.Result, done job.Range, measured bool, l *protocol.Learned,
	queue *protocol.Trust, on Slices,
) (bid bool) {
	if by == nil || r.Outcome == job.Stopped || r.Outcome == job.Lost || r.Outcome == job.NodeFailed || r.Start == 0 {
		return false
	}
	o := trust.Observation{
		Risk: c.End.Sub(c.Start).Milliseconds(), Planned: c.Plan.Wall, Ran: r.Own(),
		Predicted: c.Demand[trp.Memory], Peak: r.Peak[trp.Memory], Theta: spec.Theta,
	}
	if r.Outcome == job.MemoryKilled {
		o.Peak = max(o.Peak, o.Predicted+1) // the last sample may have missed the top
	}
	if c.Bid != nil {
		o.Declared, o.Observed = c.Bid.Score, score.Observed(spec, c, done, r)
	}
	if c.Plan.Extended != 0 || measured { // it is not the piece that was declared: only the memory can be compared
		o.Observed, o.Risk, o.Planned = o.Declared, 0, 0
	}
	l.Trust = Trust(&l.Trust, queue)
	if c.Bid != nil {
		by.Observe(&l.Trust, o)
		o.Theta = 0 // its jobs have thetas of their own
		by.Observe(queue, o)
	}
	if trust.Unsafe(&l.Trust, spec.Theta) {
		widen(l, spec, trust.Inflate(&l.Trust, l.Spread), on.Largest(spec))
	}
	return c.Bid != nil
}

// widen takes the job's profile with a wider spread.
func widen(l *protocol.Learned, spec *job.Spec, spread int64, largest quantity.Amount) {
	table, err := trp.Spread(spec.Profile, spec.Total, spec.Theta, spread)
	if err != nil {
		return // the profile compiled at submission; with more spread it has nothing to object to
	}
	// What its template and its kills have taught stays a floor: a job that is not like the others is given more by this, never less.
	now := along(table.Bounds, Safe(l, spec))
	for i, row := range table.Least {
		for k := range row {
			row[k] = max(row[k], now.Least[i][k])
		}
	}
	withinReach(&table, &now, largest, l.MemoryScale)
	l.Spread, l.Safe = spread, &table
}

// withinReach lowers what a wider profile needs to the largest slice where the present one fits there: no headroom is worth
// the job.
func withinReach(wider, now *trp.Table, largest quantity.Amount, scale int64) {
	if largest == 0 {
		return
	}
	holds := quantity.Amount(quantity.MulDiv(int64(largest), trp.Unscaled, max(trp.Unscaled, scale))) - 1 // both round up
	for i, row := range wider.Least {
		for k := range row {
			row[k] = min(row[k], max(now.Least[i][k], holds))
		}
	}
}

// along is a table with other stretches of the same units, no piece of it below what the table asks for.
func along(bounds []int64, t *trp.Table) trp.Table {
	out := trp.Table{Bounds: bounds, Least: make([][]quantity.Amount, len(bounds))}
	from := int64(0)
	for i := range bounds {
		for _, to := range bounds[i:] {
			out.Least[i] = append(out.Least[i], t.LeastOver(from, to, trp.Unscaled))
		}
		from = bounds[i]
	}
	return out
}
