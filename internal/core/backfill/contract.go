package backfill

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Supply is what a planner asks the owner of a slice.
type Supply interface {
	// Name of the slice, its node, and the version of the node's last report on it.
	Name() job.SliceID
	Node() job.NodeID
	Version() uint64
	// Location of its node: rack and block, empty where unknown.
	Location() (rack, block string)
	// Class of slices that it is of, and its place among all of them (market.Floor.Place).
	Class() *window.Class
	At() int
	// Reserved are all reservations that its node has reported. Read only.
	Reserved() []protocol.Reservation
	// Free puts its gaps from now on into out, in order: all that a rigid job could have if no other's placement were reserved.
	Free(now quantity.Instant, out []protocol.Gap) []protocol.Gap
	// Lasting: its node may use it, and nothing keeps it for good; however late, somebody else may have it.
	Lasting(now quantity.Instant) bool
	// InDoubt: its node's last report is likely to be wrong, so nothing is asked of it now, and none of it is Free.
	InDoubt(now quantity.Instant) bool
}

// Demand is what a planner asks the owner of a rigid job.
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
	Waits(now quantity.Instant) explain.Reason
	// Avoids says whether it leaves the slice to others.
	Avoids(s *Slice) bool
	CountRefusal(why atomizer.Refusal, now quantity.Instant)
}

// Sale is what a planner calls on its owner.
type Sale interface {
	// Start asks the first slice's node for a piece on all of them; reservation is one of the job's own to take over, 0 if it has none.
	Start(now quantity.Instant, j *Job, on []*Slice, p award.Piece, reservation uint64, out *protocol.Out)
	// Send sends to a node, NewAsk numbers what is asked.
	Send(m protocol.Message, out *protocol.Out)
	NewAsk() uint64
	// Reopen: what the market may sell of a slice has changed. Planned: whether a job waits for more than the market has (Job.Planned).
	Reopen(s *Slice)
	Planned(j *Job)
	// Job of a name, nil if there is none that is rigid.
	Job(id job.ID) *Job
}

// Job is one rigid job as a planner keeps it. The owner of the job holds it, and the planner asks the owner through Demand. All of it is
// soft state.
type Job struct {
	Demand
	// rank is 1 + its index among the reserved jobs, 0 if it is none; rankBefore the same in the last pass.
	rank, rankBefore int
	// place was found for it, in the pass searchedIn, with this many reserved jobs ahead of it.
	place      Placement
	searchedIn uint64
	ahead      int
	// reservedAt is when its placement's reservation was last asked for, refusedAt when one was refused.
	reservedAt, refusedAt quantity.Instant
	// queued: it is in the line, which holds only those that the discipline lines up; queuedStale: that may have changed.
	queued      bool
	queuedStale dirty.Mark
	// due is when it is late, if it is a gang, and dueSlot keeps its alarm; late: it is. paid is what the budget has paid for its place
	// since heldSince, 0 if it holds none by being late, and speeds those of its slices then.
	due          quantity.Instant
	dueSlot      int
	isLate       bool
	paid, speeds int64
	heldSince    quantity.Instant
	// planned: its placement is later, and better than what the market could give it now.
	planned bool
	// index of it where that is greatest, for each of its slices.
	index int64
	// Guest is what makes it a part of a gang of another home's; nil: it is a job of our own.
	Guest *Guest
}

// Slice is one slice as a planner keeps it. The owner of the slice holds it, and the planner asks the owner through Supply.
type Slice struct {
	Supply
	// pending is what was asked for on it and is not in a view yet.
	pending []*pending
	// placed are the placements on it of the reserved jobs so far in this pass, of all of them when it is over.
	placed []protocol.Gap
	// node that it is of; nil: the slice was removed. surveyed is the time and surveyedClass the class that the last plan saw, and
	// surveyedDoubt whether it was in doubt: a place that is kept there for the doubt's sake is to be looked at when that ends, though the
	// slice may have no more time than then.
	node          *node
	surveyed      []protocol.Gap
	surveyedClass *window.Class
	surveyedDoubt bool
}

// Guest is a part of a gang that another zone is home to, or of one of our own that is too large for our slices alone (docs/adr/0045). It
// stands in line as any gang does and its place is reserved, from when on its home says. Nothing is started there: its home asks the nodes.
type Guest struct {
	// NotBefore is when its place begins at the earliest; 0: now.
	NotBefore quantity.Instant
}

// Placement is where and when a rigid job could run, and how fast in parts per thousand: as the slowest of its slices. Without slices
// there is none.
type Placement struct {
	Slices     []*Slice
	Start, End quantity.Instant
	Speed      int64
	// Level that its slices share, and on how many nodes they are; 0 where that is one.
	Level job.Level
	nodes int
}

// node is one machine: its index among the nodes, and its slices, smallest first.
type node struct {
	at     int
	slices []*Slice
	// rack and block that it stands in.
	rack, block string
	// openings by kind, as they are indexed; openingsStale: its free time may have changed since.
	openings      [][]opening
	openingsStale dirty.Mark
}

// opening is a stretch of time in which enough slices of one node are free together. It is the survey's: placements of reserved jobs are
// not subtracted, and avoided slices are not considered. So it may promise too much and never too little: any placement on the node is
// within an opening that has begun by then and is as long.
type opening struct {
	node       *node
	start, end quantity.Instant
	// largest is a bound, in bytes: the largest slice of a place in it is no smaller.
	largest quantity.Amount
}

// pending is a ForRigid reservation that was asked for and is not in a view yet.
type pending struct {
	ask        uint64
	job        job.ID
	slice      *Slice
	start, end quantity.Instant
	expires    quantity.Instant
	// version of the slice's view that it was decided on.
	version uint64
}

// Placement is where a job's time is reserved, or will be; ok is false if it is no reserved job.
func (j *Job) Placement() (p Placement, ok bool) {
	if j == nil || j.rank == 0 {
		return Placement{}, false
	}
	return j.place, true
}

// Planned says whether it waits for a placement that is better than any window. A job without a plan does not.
func (j *Job) Planned() bool { return j != nil && j.planned }

// InvalidatePlacement makes the next pass search everywhere for the job's placement: the set of slices that it can use has changed.
func (j *Job) InvalidatePlacement() {
	if j != nil {
		j.searchedIn = 0
	}
}

// Refused says that a node refused what was asked for the job.
func (j *Job) Refused(now quantity.Instant) {
	if j != nil {
		j.refusedAt = now
	}
}

// width is how many slices it needs at once.
func (j *Job) width() int { return max(1, j.Spec().Slices) }

// reservation is a reserved job with its placement.
type reservation struct {
	job   *Job
	place Placement
}
