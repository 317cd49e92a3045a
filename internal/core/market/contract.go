package market

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Supply is what a floor asks whoever owns a slice. Answers hold until the floor is told otherwise (Floor.InvalidateSlice).
type Supply interface {
	// Name of the slice, and the node that it is of.
	Name() job.SliceID
	Node() job.NodeID
	// Usable says whether anything of it may ever be for sale as it is.
	Usable() bool
	// Unsold puts its gaps from now on into out, in order: time that nothing is reserved, sold or asked for in.
	Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap
	// Safe is until when a gap that is there at an instant is likely to last, whatever end it is offered with; Never where nothing is
	// known of that.
	Safe(from quantity.Instant) quantity.Instant
}

// Demand is what a floor asks whoever owns a job: its view, and through that its answer where an atomizer gives it at once. An
// external job is answered for by its agent, in messages (Floor.Answer). Answers hold until the floor is told otherwise
// (Floor.InvalidateJob).
type Demand interface {
	Name() job.ID
	Spec() *job.Spec
	// Queue it is in, and the longest window that this lets it have, 0 for any.
	Queue() (name string, longest time.Duration)
	// Agent answers for it in messages if it is external.
	Agent() protocol.Address
	// View is what an atomizer may know. What a node was asked for counts as claimed.
	View() atomizer.View
	// Busy is how many subjobs of it run or are asked for.
	Busy() int
	// Submitted is when it came, and Served when it last got something; 0: never.
	Submitted() quantity.Instant
	Served() quantity.Instant
	// Ineligible is why it is sold nothing at all now, Eligible if it may be.
	Ineligible(now quantity.Instant) Reason
	// RestsUntil is when its pause after a failure is over; 0 if it never had one.
	RestsUntil() quantity.Instant
	// Volatile: whether it is eligible moves without it, so it is asked each time.
	Volatile() bool
	// Avoids says whether it leaves the slice to others.
	Avoids(s *Slice) bool
	// Loses says whether most of what it works on is lost where its window ends before its time.
	Loses() bool
	// Attained is the memory-time that it has had, Use the same with what runs now, of it and of its queue, with the queue's weight
	// of at least 1; in MiB-milliseconds.
	Attained() int64
	Use(now quantity.Instant) (own, queue, weight int64)
	// Trust is what its declarations are held against: its own record, or, as long as that has Seen nothing, what jobs of its queue
	// have shown, which may change without it and is the same for all such jobs of the queue.
	Trust() protocol.Trust
	// Sentence says what a reason means for it, for people.
	Sentence(r Reason) string
}

// Sale is what a floor tells, and asks, whoever embeds it.
type Sale interface {
	// Ask asks the slice's node for a piece that a job has won.
	Ask(now quantity.Instant, j *Job, s *Slice, p Piece, out *protocol.Out)
	// Withdraw takes back what was sold of the slice from an instant on, as far as nothing of it has begun, and returns how much
	// that is.
	Withdraw(now, from quantity.Instant, s *Slice, out *protocol.Out) int
	// Purse is what the queue of a job can still pay in credits, and what a full purse of it holds.
	Purse(now quantity.Instant, j *Job) (has, full int64)
}

// Piece is a subjob that was won: what a node is asked for.
type Piece struct {
	atomizer.Piece
	Start, End quantity.Instant
	// Speed of the job there, in parts per thousand.
	Speed int64
	// Window and Round that it was won in, for people.
	Window, Round uint64
	// Option it runs with, and the bid that won it; nil where nobody bid.
	Option string
	Bid    *protocol.Bid
	// Late is what was spent of the budget of the late for it.
	Late int64
}
