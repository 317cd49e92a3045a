package swarm

import "sluice.dev/sluice/internal/core/quantity"

// TaskID names a task: the number of its slot, and of those that had the slot before, so that a message about one that is over is
// not taken for one about its successor. 0 is no task.
type TaskID uint64

// NewTaskID is the generation-th task of a slot; generations count from 1.
func NewTaskID(slot, generation uint32) TaskID { return TaskID(generation)<<32 | TaskID(slot) }

// Slot numbers live tasks densely, for what a mechanism keeps of each.
func (t TaskID) Slot() int { return int(uint32(t)) }

// Task is what may be known of one. How long it takes is not: nobody knows that before it ends.
type Task struct {
	ID TaskID
	// Job is shared by tasks that arrived together.
	Job uint64
	// Arrived at its gate; Deadline is when its owner gives up if it has not been placed.
	Arrived, Deadline quantity.Instant
	Gate              int32
	// Class of the smallest slice that is large enough.
	Class uint8
	// Long: not a task of a second, but one that stays.
	Long bool
}

// Outcome of an attempt to start a task.
type Outcome uint8

// The outcomes. None but Started changes anything.
const (
	// Started: the task runs.
	Started Outcome = iota
	// Full: no slice that is free is large enough.
	Full
	// Over: the deadline has passed. Every party could know: the deadline travels with the task.
	Over
	// Elsewhere: it runs already, or has run. A mechanism that is ever told this is wrong.
	Elsewhere
)
