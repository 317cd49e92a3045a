package score

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Observed is the score, in millionths, that a subjob turned out to deserve by its job's own weights: the features of Job
// recomputed from what was measured, so that the job supplies nothing but the prediction. The claim must have a bid.
//
//   - Progress is the units done, those that are committed, over what was for sale when it was declared (Bid.Left).
//   - Laxity is what it was then (Bid.Urgency), for the share of its units that was done, if the subjob ended before it had to
//     be stopped; otherwise 0.
//   - Overhead is that of the plan over the time it really ran, and no less than the job's spec says that start, restore and
//     checkpoint take: a plan that hides them in its run time gains nothing.
//
// Where nothing is committed nothing was worth anything. A subjob that was cut short by somebody else (truncated, withdrawn,
// lost with its machine) says nothing of its job; it should not be asked about.
func Observed(spec *job.Spec, c *protocol.Claim, done job.Range, r *job.Result) int64 {
	if done.Empty() {
		return 0
	}
	f := Job{Progress: Progress(done.Len(), c.Bid.Left), Overhead: Overhead(max(c.Plan.Wall-c.Plan.Run, unavoidable(spec, c)), r.Ran())}
	if r.End <= c.End.Add(-spec.Launch.Grace) {
		f.Laxity = quantity.MulDiv(unit(c.Bid.Urgency), min(done.Len(), c.Range.Len()), c.Range.Len())
	}
	return f.Of(spec.Worth)
}

// unavoidable is what a subjob pays beside its units by its job's spec.
func unavoidable(spec *job.Spec, c *protocol.Claim) time.Duration {
	cost := spec.Startup
	if !c.Plan.Resume.Zero() {
		cost += spec.Restore
	}
	if c.Range.To < spec.Total {
		cost += spec.Checkpoint
	}
	return cost
}
