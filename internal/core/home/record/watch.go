package record

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Watcher is what a ledger calls on its owner: it calls no floor, planner or slice itself.
type Watcher interface {
	// Make makes room for a job, within whatever is kept beside it (Job.Beside).
	Make(spec *job.Spec) *Job

	// Opened: a job has no verdict, and has work left to sell. Closed: that is over. Reopened: another life of it begins; Opened follows.
	Opened(j *Job)
	Closed(j *Job)
	Reopened(j *Job)

	// Changed: a job may be eligible where it was not before. Touched: what it answers to windows may be another. Moved: another
	// place may suit it best.
	Changed(j *Job)
	Touched(j *Job)
	Moved(j *Job)
	// QueuesChanged: the settings of a queue are others.
	QueuesChanged()

	// Sold: a claim stands. Resold: its end has moved. Freed: it was settled at that instant.
	Sold(j *Job, c *protocol.Claim)
	Resold(j *Job, c *protocol.Claim)
	Freed(j *Job, c *protocol.Claim, at quantity.Instant)
	// Taken: a claim's node does what was asked of it. TurnedDown: what a job asked for on these slices, if any, it does not get.
	Taken(j *Job, c *protocol.Claim)
	TurnedDown(now quantity.Instant, j *Job, on []job.SliceID)

	// Came: a job is at home here from now on. Paused: its owner pauses or resumes it. Rests: it pauses by itself. Began: a subjob of it
	// runs since then. Ends: a subjob has ended, with this much that counts.
	Came(now quantity.Instant, j *Job)
	Paused(j *Job)
	Rests(j *Job)
	Began(j *Job, at quantity.Instant)
	Ends(j *Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out)
}
