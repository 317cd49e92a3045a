package backfill

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Supply is what a planner asks whoever owns a slice.
type Supply interface {
	// Name of the slice, the node that it is of, and the version of what that has said of it.
	Name() job.SliceID
	Node() job.NodeID
	Version() uint64
	// Location of its node: rack and block, empty where unknown.
	Location() (rack, block string)
	// Class of slices that it is of, and its place among all of them (market.Floor.Place).
	Class() *market.Class
	At() int
	// Reserved are all reservations that its node has told of. They are only read.
	Reserved() []protocol.Reservation
	// Free puts its gaps from now on into out, in order: all that a rigid job could have if no other's placement were reserved.
	Free(now quantity.Instant, out []protocol.Gap) []protocol.Gap
	// Lasting: its node may use it, and nothing keeps it for good; however late, somebody else may have it.
	Lasting(now quantity.Instant) bool
	// InDoubt: what its node has said of it is likely to be wrong, so nothing is asked of it now, and nothing of it is Free.
	InDoubt(now quantity.Instant) bool
}

// Demand is what a planner asks whoever owns a rigid job.
type Demand interface {
	Name() job.ID
	Spec() *job.Spec
	Submitted() quantity.Instant
	View() atomizer.View
	// Active: it has no verdict. Waiting: and nothing of it runs or is asked for. Asking: something is asked for.
	Active() bool
	Waiting() bool
	Asking() bool
	// Waits is why it is not served at all now, Eligible if it may be.
	Waits(now quantity.Instant) market.Reason
	// Avoids says whether it leaves the slice to others.
	Avoids(s *Slice) bool
	CountRefusal(why atomizer.Refusal, now quantity.Instant)
}

// Sale is what a planner tells whoever embeds it.
type Sale interface {
	// Start asks the first slice's node for a piece on all of them; reservation is one of the job's own to take over, 0 if it has none.
	Start(now quantity.Instant, j *Job, on []*Slice, p market.Piece, reservation uint64, out *protocol.Out)
	// Send sends to a node, NewAsk numbers what is asked.
	Send(m protocol.Message, out *protocol.Out)
	NewAsk() uint64
	// Reopen: what the market may sell of a slice has changed. Planned: whether a job waits for more than the market has (Job.Planned).
	Reopen(s *Slice)
	Planned(j *Job)
	// Job of a name, nil if there is none that is rigid.
	Job(id job.ID) *Job
}
