package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Loans: zones keep places for a gang that is too large for its home zone (docs/adr/0045). Soft, and repeated by the home.
const (
	// Lenders asks which zones could lend slices for a job: Job, LenderList. Zone -> gate, which says it back with their names.
	Lenders Kind = iota + 176
	// Borrow asks a zone for slices for a gang, or gives them back: Job, Epoch, Loan. Home -> zone. A kept place lapses after a while,
	// unless Borrow is repeated.
	Borrow
	// Lent answers it: Job, Lending. Zone -> home.
	Lent
)

// MostLenders is over how many zones a gang lies at most.
const MostLenders = 16

// LenderList is which zones could lend slices for a job.
type LenderList struct {
	// Seq numbers what a home says of one job, over restarts.
	Seq uint64
	// Without are zones that are not to be named: they could not lend, or did not answer.
	Without []job.ZoneID
	// Zones that could, those with most slices for the job first; at most MostLenders. The home may be one of them.
	Zones []Lender
}

// Lender is a zone with how many slices it has that could run a job.
type Lender struct {
	Zone   job.ZoneID
	Slices int
}

// Loan is what a home wants of a zone for a gang.
type Loan struct {
	Seq uint64
	// Slices that it wants at once; 0: all that was lent is given back. Taken: the gang runs on it.
	Slices int
	Taken  bool
	// Length of time for which, NoEnd: for good, and NotBefore when; 0: now.
	Length    time.Duration
	NotBefore quantity.Instant
	// Keep: a place is to be kept for it. Otherwise the zone only reports which one could be.
	Keep bool
	// What the job is, when it came, what was learned of it and which slices it leaves to others.
	Spec      *job.Spec
	Submitted quantity.Instant
	Learned   *Learned
	Avoids    []job.SliceID
}

// Lending is what a zone would lend for a gang, or keeps for it.
type Lending struct {
	// Seq of the Loan that it answers.
	Seq uint64
	// Could is how many slices it could lend at most, one day.
	Could int
	// Start and End of the place that it would give, or keeps, with the job's Speed there; Start is 0 if there is none.
	Start, End quantity.Instant
	Speed      int64
	Kept       bool
	// Earliest is when the place could begin at best, whatever Loan.NotBefore was; 0: never.
	Earliest quantity.Instant
	// Slices of the place that is kept, in order of node id.
	Slices []LentSlice
	// Why there is no place, or none is kept, for people.
	Why string
}

// LentSlice is one slice that is lent.
type LentSlice struct {
	ID       job.SliceID
	Node     job.NodeID
	Capacity trp.Vector
}

// Body marks what zones and gates tell each other.
func (*LenderList) Body() {}
func (*Loan) Body()       {}
func (*Lending) Body()    {}
