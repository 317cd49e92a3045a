package host

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/journal"
)

// Receipt answers a submission.
type Receipt struct {
	Name job.ID
	// Created is false if the same request, or the same name with the same content, was known already.
	Created bool
	// Generation of its present life, and how an earlier call's job ended, if it is over.
	Generation job.Generation
	Verdict    job.Verdict
	// Position of the journal at which the acceptance was durable: a second witness that the person holds.
	Position journal.Position
}

// Submission is one job that somebody submits.
type Submission struct {
	// Request identifies the call; empty: the host makes one.
	Request string
	Spec    *job.Spec
	// Replace puts it in the place of a job of that name that is over, whose output, checkpoints and logs are removed. A job that is
	// not over is in the way (Conflict).
	Replace bool
	// Workdir is the digest of a work directory that is in the store already; empty: the job has the one that came along, if one did.
	Workdir string
}

// Outcome is what became of a submission.
type Outcome struct {
	Receipt
	Err error
}

// LogFollow is what somebody wants to hear who follows the logs of a job.
type LogFollow struct {
	// Token of the one subjob that is followed; zero: all of the job.
	Token job.Token
	// Since and Seen are where a follower was when it was cut off: Since as its first piece said it, and how much it has of
	// each subjob. Zero and nil: it begins.
	Since quantity.Instant
	Seen  []LogPosition
}

// LogPosition is how much of what a subjob wrote is known to a follower, in bytes.
type LogPosition struct {
	Token    job.Token
	Out, Err int64
	// Over: nothing more will come of it.
	Over bool
}

// LogPiece is one thing a follower hears: bytes of a subjob, that it is over, or in the first piece alone Since.
type LogPiece struct {
	Token  job.Token
	Stderr bool
	Data   []byte
	Over   bool
	Since  quantity.Instant
}
