package view

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// What a view reads of the parts of a zone. None of these methods changes what is decided; lists are their owners', and only read.

// Floor is what the market says, of a job by the ledger's record of it.
type Floor interface {
	// Classes of slices, and the Slices, by capacity, then id.
	Classes() []*window.Class
	Slices() []*window.Slice
	// Open is how many windows are open; Look shows them, with what is answered to them.
	Open() int
	Look(now quantity.Instant) *market.Look
	// Fit is what a job would answer to a window of a class.
	Fit(j *home.Job, c *window.Class, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal)
	// Counts are why a job was not served, Losses what it lost its bids to, Rank its place in the policy's order.
	Counts(j *home.Job) explain.Counts
	Losses(j *home.Job) []status.Loss
	Rank(now quantity.Instant, j *home.Job) status.Rank
	// Attended says whether an agent of an external job is there, Declining why a job declined the window it was picked for.
	Attended(j *home.Job) bool
	Declining(j *home.Job) (refusal atomizer.Refusal, text string)
	// Stats are what the market has done since it came up.
	Stats() status.Negotiation
}

// Place is where a rigid job is to run.
type Place struct {
	Start quantity.Instant
	// Speed there, in parts per thousand.
	Speed int64
}

// Planner is what the plan for rigid jobs says.
type Planner interface {
	// Planned is the placement that is kept for a job. Reserves reports whether one would be kept for such a job if it came now.
	Planned(j *home.Job) (Place, bool)
	Reserves(j *home.Job) bool
	// ReservedFor is the slice that a node has reserved for a job, and from when.
	ReservedFor(id job.ID) (on job.SliceID, from quantity.Instant, ok bool)
	// Search returns a function that finds the best place for a job as things are now.
	Search(now quantity.Instant) func(j *home.Job) (Place, bool)
}

// Slices is what is known of slices beside what their market keeps of them.
type Slices interface {
	// Seen is what its node has told of it last.
	Seen(s *window.Slice) *protocol.SliceView
	// Holder is the job whose claim on it has begun, and the claim's end; empty: none has.
	Holder(now quantity.Instant, s *window.Slice) (holder job.ID, end quantity.Instant)
	// Asks for its time that are not answered.
	Asks(s *window.Slice) []*home.Ask
}

// Waits is what is learned of waits.
type Waits interface {
	// Told is a job's predicted wait.
	Told(j *home.Job) foresight.Told
	// Interval and Range as foresight.Learner has them, Record how its ranges have come out.
	Interval(now quantity.Instant) (interval time.Duration, known bool)
	Range(now quantity.Instant, t foresight.Told) (early, late quantity.Instant)
	Record() status.Foresight
}

// Loans is what is known of slices that other zones are to lend.
type Loans interface {
	// Waits is how far a gang is that is too large for its zone; false if it needs no other.
	Waits(now quantity.Instant, j *home.Job) (string, bool)
}

// Tickets is what the search for places says of a job (mechanism laminar).
type Tickets interface {
	// Waits is why it has no place yet, in one sentence.
	Waits(now quantity.Instant, j *home.Job) string
	// Trail counts what its tickets have met.
	Trail(j *home.Job) []status.Reason
}
