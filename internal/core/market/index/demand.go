package index

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Demand is what an index asks whoever owns a job: its view, and through that its answer where an atomizer gives it at once. An
// external job is answered for by its agent, in messages. Answers hold until the index is told otherwise (Index.Invalidate).
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
	Ineligible(now quantity.Instant) explain.Reason
	// RestsUntil is when its pause after a failure is over; 0 if it never had one.
	RestsUntil() quantity.Instant
	// Volatile: whether it is eligible moves without it, so it is asked each time.
	Volatile() bool
	// Avoids says whether it leaves the slice to others.
	Avoids(s *window.Slice) bool
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
	Sentence(r explain.Reason) string
}
