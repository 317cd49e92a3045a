package score

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Observed is the score, in millionths, that a subjob turned out to deserve by its job's own weights: the features of Job
// recomputed from what was measured, so that the job supplies nothing but the prediction. The claim must have a bid.
//
//   - Progress is the units done, those that are committed, over what was for sale when it was declared (Bid.Left).
//   - Laxity is what it was then (Bid.Urgency), if the subjob ended before it had to be stopped; otherwise 0.
//   - Overhead is that of the plan over the time it really ran.
//
// Where nothing is committed nothing was worth anything. A subjob that was cut short by somebody else (truncated, withdrawn,
// lost with its machine) says nothing of its job; it should not be asked about.
func Observed(spec *job.Spec, c *protocol.Claim, done job.Range, r *job.Result) int64 {
	if done.Empty() {
		return 0
	}
	f := Job{Progress: Progress(done.Len(), c.Bid.Left), Overhead: Overhead(c.Plan.Wall-c.Plan.Run, r.Ran())}
	if r.End <= c.End.Add(-spec.Launch.Grace) {
		f.Laxity = unit(c.Bid.Urgency)
	}
	return f.Of(spec.Worth)
}
