package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Adoption is a job, or another life of one, as its gate gives it a home.
type Adoption struct {
	// Since is the first life of the same work: what lives from then on have committed is kept.
	Since job.Generation
	// At is when this life was asked for.
	At   quantity.Instant
	Spec *job.Spec
	// Queue is the zone's share of its queue.
	Queue *Queue
	// Paused: it gets no windows yet.
	Paused bool
	// Record is what the old home has surrendered; nil unless the job moves.
	Record *Record
}

// Moving tells a zone why it is to give a job up.
type Moving struct{ Text string }

// Closing is how a job ended, and when.
type Closing struct {
	Verdict job.Verdict
	At      quantity.Instant
}

// Body marks what gate and zone tell each other.
func (*Adoption) Body() {}
func (*Closing) Body()  {}
func (*Moving) Body()   {}
func (*Record) Body()   {}
func (*Queue) Body()    {}
