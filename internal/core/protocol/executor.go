package protocol

import (
	"slices"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// Stock is what a machine has. From an executor it is the first input of its node, with what earlier boots left behind; later ones, where
// slices come and go, list all there are then. To a gate only slices; from a gate, which asks for them, nothing.
type Stock struct {
	Slices []Slice
	Found  []Found
	// Until is when the machine is gone for good; 0: that is not known. Each list says it again. Leaves: it is about to, so nothing more is
	// sold, and what runs has a moment.
	Until  quantity.Instant
	Leaves bool
}

// Shift moves a running subjob's end, earlier or later. Text says why, if it is truncated.
type Shift struct {
	Range job.Range
	End   quantity.Instant
	Text  string
}

// Settlement decides what becomes of the directories of an ended subjob.
type Settlement struct {
	// Range that was committed, if it was.
	Range     job.Range
	Committed bool
}

// Intrusion is all that others have of a slice; it replaces the report before.
type Intrusion struct {
	Slice job.SliceID
	// Present: a process that is not ours is there, and Text says which; nobody knows its end. Else none is.
	Text    string
	Present bool
	// Closures are what else others have of it, or will: Kind, Start (0: since its first report), End (Never: not known), Every, Source
	// (who, for people), Truncate. Of kind ForForeign it stays beyond its end, until it is not reported any more; every other is over at
	// its end.
	Closures []Reservation
}

// All are the closures that it tells of.
func (i *Intrusion) All() []Reservation {
	if !i.Present {
		return slices.Clone(i.Closures)
	}
	return append(slices.Clone(i.Closures), Reservation{Kind: ForForeign, End: quantity.Never, Source: i.Text})
}

// Wishes are changes of those who wait for devices, and of the machines that have these (core/reclaim): each is whole and replaces the one
// before, or is gone.
type Wishes struct {
	Machines  []reclaim.Machine
	Lost      []string
	Wishes    []reclaim.Wish
	Dropped   []Dropped
	Groups    []reclaim.Group
	Disbanded []reclaim.ID
}

// Dropped is a wish that waits no more. Served: it has what it wanted, or at least a machine.
type Dropped struct {
	ID     reclaim.ID
	Served bool
}

// Condition says that a node can start nothing, and why, or can again.
type Condition struct {
	Text      string
	Unhealthy bool
}

// Vitals is a report on one GPU: errors that have come, or its state now.
type Vitals struct {
	// Slices are all that are cut from it.
	Slices []job.SliceID
	// Errors that its driver has told of since.
	Errors []Xid
	// Look is its state, which replaces the one before; nil: errors only.
	Look *health.Look
	// Life names the time since its machine was started; empty: not known.
	Life string
}

// Xid is an error that a GPU's driver has reported, by NVIDIA's number. On is its slice; empty: the GPU as a whole.
type Xid struct {
	Code uint32
	On   job.SliceID
}

// Moment is when a Tick is asked for.
type Moment struct{ At quantity.Instant }

// Body marks what node and executor tell each other, and what the timer is asked.
func (*Stock) Body()      {}
func (*Shift) Body()      {}
func (*Settlement) Body() {}
func (*Intrusion) Body()  {}
func (*Wishes) Body()     {}
func (*Condition) Body()  {}
func (*Vitals) Body()     {}
func (*Moment) Body()     {}
