// Package supply decides how many machines to ask a host scheduler for, how long, and which to give back: from what waits, from the gaps
// that the host shows, from what a start costs, and from what was granted and lost before.
//
// Decide is a function of its arguments alone: all that it remembers comes back to it with the next Sight, so that a restart, a lost
// message or a repeated one changes nothing. It knows neither Slurm nor Kubernetes: edge/provider translates, host/pilots asks.
package supply

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Pool is what a provider lends: pilots of one kind. A pilot is a machine that joins for a while (`sluice join --ephemeral --until`).
type Pool struct {
	// Name of the provider.
	Name string
	// Most is how many pilots there may be at once: asked for, waiting, running, or not known to be gone. At least 1.
	Most int
	// Lengths that may be asked for, ascending, at least one. Where the host shows gaps, any length from the first to the last may be
	// asked for, in steps of Step.
	Lengths []time.Duration
	// Step is the host's unit of a length: a minute for Slurm. At least 1 s.
	Step time.Duration
	// Idle is how long a pilot may have nothing to run before it is given back.
	Idle time.Duration
	// Start is how long a pilot is expected to take from its start until its machine has joined, until that is learned.
	Start time.Duration
	// HandOver is how long before its end a pilot's time is not sold any more.
	HandOver time.Duration
	// Slices that each pilot has; at least one.
	Slices []Slice
	// Paused says who paused the pool and why; empty: it is not paused. A paused pool asks for nothing, and gives back what waits.
	Paused string
}

// Slice is what one slice of a pilot has.
type Slice struct {
	Capacity trp.Vector
	// Speed in parts per thousand of the reference, as protocol.Slice has it.
	Speed int64
	// Model and Profile, as protocol.Slice has them.
	Model, Profile string
}

// Sight is what is known of a pool at one moment. Each replaces the one before.
type Sight struct {
	// Number grows with each of a pool; the Order that answers carries it.
	Number uint64
	Pool   Pool
	// Seen is when the host answered last; 0: it never has.
	Seen quantity.Instant
	// Silent says why the host does not answer now; empty: it does.
	Silent string
	// Blind: the host does not show gaps, so Gaps is empty and says nothing.
	Blind bool
	// Gaps are when a pilot that is asked for now could be there, in order of Start, then End.
	Gaps []Gap
	// Pilots are all that may be there, by name.
	Pilots []Pilot
	// Endings are the latest of pilots that are gone, oldest first, at most MostEndings.
	Endings []Ending
}

// MostEndings is how many endings of pilots are remembered.
const MostEndings = 64

// Gap is room at the host for Count pilots of a pool, half-open. End Never: no end is known.
type Gap struct {
	Start, End quantity.Instant
	Count      int
}

// State is how far a pilot is.
type State uint8

// The states of a pilot, in their order.
const (
	// Sent: the host was asked, and has not confirmed it: it may have it or not.
	Sent State = iota + 1
	// Waiting in the host's queue.
	Waiting
	// Starting: the host says that it runs, and its machine has not joined.
	Starting
	// Joined: its machine has joined.
	Joined
	// Leaving: it was told to end, or its host takes it back.
	Leaving
)

// String is the state's word for people.
func (s State) String() string {
	return [...]string{"", "sent", "waiting", "starting", "joined", "leaving"}[s]
}

// Pilot is one that may be there.
type Pilot struct {
	// Name is also that of its machine.
	Name   string
	State  State
	Length time.Duration
	// Asked is when the host was asked for it, Started when it began to run there, Until when it is gone at the latest; 0: not known.
	// Expected is when the host means to start it; 0: it does not say.
	Asked, Started, Joined, Until, Expected quantity.Instant
	// Idle is since when it has had nothing to run, as the orders before said (Order.Idle); 0: it has, or had not joined.
	Idle quantity.Instant
	// Recalled: it leaves since its host takes it back, and was not told to end.
	Recalled bool
}

// How a pilot ended.
type How uint8

// The ways.
const (
	// Done: it left by itself, in time or since nothing was left for it.
	Done How = iota + 1
	// Withdrawn: it was given back before it started.
	Withdrawn
	// Preempted: the host took it back for others. It is no failure.
	Preempted
	// Refused: the host did not take it (see Ending.Limited).
	Refused
	// Failed: it started and its machine did not join, or it ended before its time by itself.
	Failed
	// Vanished: the host does not know it any more, and nobody saw how it ended.
	Vanished
)

// String is the way's word, for people and in files.
func (h How) String() string {
	return [...]string{"", "done", "withdrawn", "preempted", "refused", "failed", "vanished"}[h]
}

// Ending is how a pilot that is gone ended.
type Ending struct {
	Name   string
	How    How
	Length time.Duration
	// Asked, Started, Joined and Ended are 0 where that was never.
	Asked, Started, Joined, Ended quantity.Instant
	// Limited: a limit of the host's on how much its users may have was in the way, and not a want of room: it refused the pilot, or kept
	// it waiting until it was withdrawn. It lifts by itself.
	Limited bool
	// Why in the host's words.
	Why string
}

// Demand is one job that waits, as far as a pool's slices could serve it.
type Demand struct {
	Job job.ID
	// Left is how long what is neither committed nor claimed takes on one slice of the pool, pieces' restores and checkpoints left out.
	Left time.Duration
	// Least is the wall time of its shortest useful piece there, and Whole whether it must be done in one (rigid): Left in one piece then.
	Least time.Duration
	Whole bool
	// Costs are what each piece pays beside its work: start, restore, checkpoint and grace. Left of what is Whole has them already.
	Costs time.Duration
	// Width is how many slices it can use at once, at least 1.
	Width int
	// Barred are the classes of slots that can not serve it, ascending; -1, -2 and so on are the slices of the pool, in their order.
	Barred []int
}

// Slot is a slice of a pilot that has joined, or of any other machine that serves the same jobs.
type Slot struct {
	// Node is the machine. It is a pilot's if a pilot has that name.
	Node job.NodeID
	// Free is when what it was sold is over; at or before now: it has nothing.
	Free quantity.Instant
	// Until is when it is not sold any more; Never: no end is known.
	Until quantity.Instant
	// Usable: the market can sell it now.
	Usable bool
	// Class is what slots it is alike to: 0 or more, the same for all of one kind. It is only held against Demand.Barred.
	Class int
}

// Order is what to do for a pool, in answer to a Sight.
type Order struct {
	Pool   string
	Number uint64
	// Ask for pilots of these lengths.
	Ask []time.Duration
	// Cancel pilots that wait, and give back pilots that have nothing to do: by name, sorted.
	Cancel []Cancel
	// Idle are the pilots that have nothing to run now, by name, sorted.
	Idle []string
	// Why in one sentence, for people: what was asked for and given back, or why nothing is.
	Why string
	// Next is when to look again at the latest.
	Next quantity.Instant
}

// Cancel is one pilot that is given back.
type Cancel struct{ Name, Why string }

// Body marks what zones and providers tell each other.
func (*Sight) Body() {}
func (*Order) Body() {}
