package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Zone <-> node, where the market is at the node (Laminar): a job goes to a node's floor for a while, and negotiates there as an external
// job does at a zone's: Announce, Answer, Told, with its home as its agent. Soft.
const (
	// Visiting: the job is there, with this description: Job, Session, Visit. Repeated now and then; without repetition it lapses after a
	// while.
	Visiting Kind = iota + 208
	// Parting: Job, Session. Zone -> node: it has nothing to win there any more. Node -> zone: it was not let in, for as many are there as
	// may.
	Parting
	// Winning is a piece that the job has won there, with the grant that holds its time: Job, Prize. Node -> zone, which claims it or lets
	// it go.
	Winning
)

// Prize is a piece that was won at a node's floor.
type Prize struct {
	Place
	// Round and Window that it was won in, with the Option and the Bid that won it.
	Plan   Plan
	Range  job.Range
	Demand trp.Vector
	// Speed of the job there, in parts per thousand.
	Speed int64
	Bid   *Bid
}

// Body marks what Winning carries.
func (*Prize) Body() {}

// Visit is a job that negotiates at a node for a while, as its home describes it: what the node's floor needs to offer it windows and to
// compare what it bids. The job's home answers for it in each round (Announce, Answer, Told, as an agent does), and owns it as ever.
type Visit struct {
	Spec *job.Spec
	// Queue that it is in, with its Weight (at least 1) and the Longest window that this lets it have; 0 for any.
	Queue   string
	Weight  int64
	Longest time.Duration
	// Submitted is when it came, Served when it last got something; 0: never.
	Submitted, Served quantity.Instant
	// Committed and Claimed are disjoint; what was asked for elsewhere counts as claimed. Skipped of the committed units were skipped.
	Committed, Claimed job.Ranges
	Skipped            int64
	// Running subjobs, asked-for ones counted.
	Running int
	Learned *Learned
	Resume  job.Token
	// Own memory-time that it has had, and that of its queue, in MiB-milliseconds.
	Own, Others int64
	// Avoids are slices that it leaves to others.
	Avoids []job.SliceID
}

// Body marks what Visiting carries.
func (*Visit) Body() {}
