package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Placement is what of a job is to run where and when, and with what: a range on a slice (of a rigid job on further ones Also), from Start
// to End, the grace included.
type Placement struct {
	Slice      job.SliceID
	Also       []job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Demand     trp.Vector
	// Peak that the demand is a quantile of; zero where the host's memory is not counted, or by a home of before: then the demand counts
	// as its mean.
	Peak trp.Peak
	Plan Plan
}

// Asking is a zone's question for a grant. Its id numbers what a zone asks of nodes.
type Asking struct {
	Ask uint64
	// Placement without a range, which the node does not decide on; its plan names the member of a gang that it is for, if any.
	Placement
	// Reservation is by its id one of the job's own, to take over; nil: none.
	Reservation *Reservation
}

// OwnPlace stands for the id of a reservation: whatever is kept for the job there. A zone keeps it that does not tell the job's home its
// id.
const OwnPlace = ^uint64(0)

// Grant is a node's hold until Expiry: soft, and fenced by the token's epoch.
type Grant struct {
	Ask                uint64
	Slice              job.SliceID
	Also               []job.SliceID
	Start, End, Expiry quantity.Instant
}

// Refusal answers an Ask, an Extend, a zone's Reserve or a Redeem.
type Refusal struct {
	Ask   uint64
	Slice job.SliceID
	Text  string
	// Ends: what stays on the slice ends for whoever asked, and the slice is offered in a moment.
	Ends bool
}

// Work is a subjob as it was sold: as the home redeems it, and as the node has it started.
type Work struct {
	Placement
	Spec *job.Spec
	Rank Rank
}

// Holding is the slice on which a lease was made.
type Holding struct{ Slice job.SliceID }

// Beginning is when a subjob began, and where.
type Beginning struct {
	Slice job.SliceID
	Range job.Range
	At    quantity.Instant
}

// Observation is how far a running subjob is, in units, and what it uses now.
type Observation struct {
	Slice    job.SliceID
	Progress int64
	At       quantity.Instant
	Demand   trp.Vector
	// Storing: its processes are gone, and its result is sent once its output is durable in its place. Vacant: nothing holds its slices any
	// more.
	Storing, Vacant bool
	// Remains: its lease is over and its processes are not confirmed gone, or SIGKILL did not end them. Its node says so, again and again.
	Remains bool
}

// Conclusion is how a subjob ended, with its lease.
type Conclusion struct {
	Slice      job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Result     *job.Result
	// Resident is the program that has stayed after it, from executor to node; nil: none has. Soft: no restart finds it.
	Resident *Resident
}

// Resident is a program that stays between subjobs.
type Resident struct {
	// Number of it (job.Spec.Residence); above 0.
	Number uint64
	// Memory that it holds while it waits, in bytes.
	Memory quantity.Amount
	// Since is when it was started.
	Since quantity.Instant
}

// Removal names a node that is none any more. What it offered is not there; what was sold there may run on until its lease ends.
type Removal struct{ Node job.NodeID }

// Acknowledgement is what was committed of a result; empty: nothing, or it was refused.
type Acknowledgement struct{ Range job.Range }

// Extension is a running lease with another range and end: as asked for, and as granted.
type Extension struct {
	Ask   uint64
	Slice job.SliceID
	Range job.Range
	End   quantity.Instant
	// Peak of all of the range; zero: as it was.
	Peak trp.Peak
}

// Halt ends a running lease. Text is the cause.
type Halt struct {
	Text string
	// Unstarted: only if it has not begun; then it is withdrawn.
	Unstarted bool
	// Short: its node is short of memory, and what is left of it may go on elsewhere. Now: without the grace that it has to end in order.
	Short, Now bool
}

// Reason is why something is as its kind says, for people.
type Reason struct{ Text string }

// SameResident reports whether two views of a slice have the same program staying there, or none.
func SameResident(a, b *Resident) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// Body marks what zone and node tell each other.
func (*Asking) Body()          {}
func (*Grant) Body()           {}
func (*Refusal) Body()         {}
func (*Work) Body()            {}
func (*Holding) Body()         {}
func (*Beginning) Body()       {}
func (*Observation) Body()     {}
func (*Conclusion) Body()      {}
func (*Removal) Body()         {}
func (*Acknowledgement) Body() {}
func (*Extension) Body()       {}
func (*Halt) Body()            {}
func (*Reason) Body()          {}
func (*SliceView) Body()       {}
