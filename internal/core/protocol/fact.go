package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// FactKind is what a fact records. Numbers are part of the stored format: they are never reused. A kind's comment says which fields of the
// header it uses, and in brackets the type of its body; a kind without one has no body.
type FactKind uint8

// Facts of the gate.
const (
	// JobAccepted: Job, Epoch, Generation (its first life), At [Acceptance]. The facts behind it in the same step say the rest of an
	// archived job that is taken back.
	JobAccepted FactKind = iota + 1
	// JobHomed: the zone has acknowledged: Job, Epoch.
	JobHomed
	// JobClosed: Job, At [Final].
	JobClosed
	// JobForgotten: retention is over, or a person deleted or replaced it: Job, Generation (its last life), Epoch [Forgetting]. Its files
	// and its home's record are to go; until JobPurged a new job of that name waits. Generation 0, as written before there were lives:
	// nothing is waited for. In snapshots one without Job brings the highest generation that was ever forgotten.
	JobForgotten
	// QueueSet [Queue].
	QueueSet
	// JobCancelling: its owner cancelled it; the zone is told until it is closed: Job, At (when; 0 before version 9 of the format: not
	// known) [JobCancel].
	JobCancelling
	// JobPaused: paused or resumed: Job [JobPause].
	JobPaused
	// JobRequeued begins another life of a job that is over: Job, Generation, At [Sequel].
	JobRequeued
	// JobPurged: neither files nor a home are left of lives up to Generation: Job, Generation.
	JobPurged
	// JobArchived: the archive has the gate's part of a job that is over, and the gate drops it: Job, Generation [Archiving].
	JobArchived
	// JobDrawn: its home is drawn, where nothing was known of any zone that could run it when it was accepted: Job, Epoch [InZone]. Only
	// with several zones.
	JobDrawn
	// ZoneDrained: nothing is at home in the zone any more, from now on and for good [InZone].
	ZoneDrained
	// Rehomed: a job leaves its home, which is drained, for another: Job, Epoch (the next one) [InZone] (empty: no other is known that
	// could run it; JobDrawn follows). The old home goes on until it has surrendered the job.
	Rehomed
	// JobDeparted: the old home has forgotten a job that was surrendered: Job, Generation, Epoch (the old home's) [Departure].
	JobDeparted
)

// Facts of a zone.
const (
	// HomeTaken: Job, Epoch, Generation, At (submitted) [Taking].
	HomeTaken FactKind = iota + 32
	// Claimed: a range is sold under this token: Job, Epoch, Generation, Token, At (when it was asked for) [Sale].
	Claimed
	// ClaimExtended: Job, Token [Extent].
	ClaimExtended
	// Released: Job, Token, At [ClaimEnd]. Nothing of it counts.
	Released
	// Committed: Job, Token, At [ClaimEnd]. It alone decides what counts; OutputPublished says that the output is in its place.
	Committed
	// Calibrated: Job [Learned]. What was learned from an ended subjob.
	Calibrated
	// Ended: Job, At [Final].
	Ended
	// HomeDropped: the job's record is forgotten: Job, Generation [HomeDrop]. No life of it up to that one is taken home again.
	HomeDropped
	// HomePaused: Job [JobPause].
	HomePaused
	// QueueKnown [Queue].
	QueueKnown
	// HomeKept: Job [Keeping]. The whole state of one job, in snapshots and for the archive.
	HomeKept
	// QueueCalibrated [Calibration]. What the market has learned of a queue, and its credits. Noted when a Result changes the queue's
	// trust, and before each Claimed that has a price, to bring the credits up to date from which that takes it.
	QueueCalibrated
	// Taught [Lesson]. What a finished job has shown of its template; in snapshots all that is remembered of one.
	Taught
	// HomeReopened: another life of a job that was over begins, with what is committed: Job, Generation, At [Sequel].
	HomeReopened
	// OutputPublished: Job, Token. Committed output and checkpoint are where people and the next subjob find them.
	OutputPublished
	// HomeArchived: the archive has the record of a job that is over, and the zone drops it: Job, Generation.
	HomeArchived
	// HomeLeaving: the job is given up to another zone, and no more of it is sold here: Job, Generation [Reason].
	HomeLeaving
)

// Facts of a node.
const (
	// Booted: Epoch. Before the node answers anyone. In snapshots also [Reservation], whose ID is the last one given out.
	Booted FactKind = iota + 64
	// LeaseMade: Token, Job, Epoch (home's), Generation [Terms]. The token is spent.
	LeaseMade
	// LeaseExtended: Token, Job [Extent].
	LeaseExtended
	// Truncated: Token, Job [Truncation].
	Truncated
	// SubjobStarted: Token, Job, At.
	SubjobStarted
	// SubjobEnded: Token, Job [SubjobEnd]. Its process tree is confirmed gone, and what counts of it is stored.
	SubjobEnded
	// ResultSettled: Token, Job [Acknowledgement]. The home has it.
	ResultSettled
	// LeaseGone: Token, Job. Directories are settled; nothing of the lease is left.
	LeaseGone
	// ReservationMade: Slice [Reservation].
	ReservationMade
	// ReservationGone [Reservation]; only the ID counts.
	ReservationGone
	// Quarantined: Slice, At, Token (of the subjob whose processes are the reason) [Reason]. Lifted by QuarantineLifted.
	Quarantined
	// QuarantineLifted: Slice.
	QuarantineLifted
	// SliceFailed: Slice [health.Fault]. Its GPU fails, so it is not sold until SliceMended.
	SliceFailed
	// SliceMended: Slice [Reason].
	SliceMended
	// SubjobVacated: Token, Job. Its process tree is confirmed gone, and what it has left is being stored: its time is free again.
	// SubjobEnded follows with how it ended.
	SubjobVacated
)

// Fact is one durable decision of one actor: a header, of which a kind uses what its comment names, and a body of the kind's own type,
// which nobody writes to. Recovery applies facts in order and decides nothing again.
type Fact struct {
	Kind FactKind
	// Actor whose fact it is.
	Actor Address

	Job        job.ID
	Epoch      uint32
	Generation job.Generation
	Token      job.Token
	// Slice that it is about; what is sold is in its body.
	Slice job.SliceID
	At    quantity.Instant
	Body  Body
}

// Lesson is what finished jobs of one template of one queue have shown, oldest first.
type Lesson struct {
	Queue, Template string
	Runs            []forecast.Run
}

// Learned is what a home knows of a job beyond its spec; a Calibrated fact replaces it whole.
type Learned struct {
	// Rates are recent run times of one unit at speed 1, newest last, at most MaxRates.
	Rates []time.Duration
	// Rate is the quantile of Rates that plans use; 0 while there are none and the declared time counts.
	Rate time.Duration
	// Prepares are what recent starts took at their node before the process began, newest last, at most MaxPrepares. What
	// was unpacked meanwhile, which happens once on a node, is no part of it.
	Prepares []time.Duration
	// Prepare is what plans use of them; 0 while there are none.
	Prepare time.Duration
	// Margin multiplies the planned run time, in parts per thousand: raised by a missed deadline, decays on success.
	Margin int64
	// MemoryScale multiplies the profile, in parts per thousand: raised by a memory kill.
	MemoryScale int64
	// Peak observed over all subjobs.
	Peak trp.Vector
	// Failures in a row without progress, FailedAt when the last was counted, by the home's clock, and its detail. A subjob that
	// was asked for before that ran beside it, and is not counted. 0: none was.
	Failures   int
	FailedAt   quantity.Instant
	LastDetail string
	// Kills in a row from outside (a machine that failed, a daemon that died, a node that was not heard of again, want of a
	// processor), which are not the job's failures, and KilledAt when the last was counted, in the same way.
	Kills    int
	KilledAt quantity.Instant
	// Suspect ranges of an items job that failed, disjoint and in order, each with the largest piece to try next.
	Suspects []Suspect
	// Trust in what the job declares.
	Trust Trust
	// Spread multiplies the deviations of the profile, in parts per thousand: raised where the rate of excess can't be
	// that of theta. Runs is from how many finished jobs of its template the profile was learned (forecast.Rule); 0: none.
	// Safe is the profile with both; nil: as submitted.
	Spread, Runs int64
	Safe         *trp.Table
	// Busy is the share of their run that its subjobs wait for a processor, in parts per thousand, below 1000. Rates are without it, plans
	// add it: it is the machines', and passes.
	Busy int64
	// Trials is how many pieces of a job without a declared time have used all of their time in a row and completed nothing before one told
	// how long a unit takes: each gets longer than the last.
	Trials int64
	// Sampled is the most units that one of the pieces behind Rates had; 0 where a time is declared. Every piece's rate has its start in
	// it, so the rates of shorter ones are forgotten.
	Sampled int64
	// Start is the shortest run of a piece so far, which no start of its process takes longer than; 0 where a time is declared.
	Start time.Duration
}

// Measures reports whether nothing is known of how long a unit of the job takes: its next piece is the one that tells.
func (l *Learned) Measures(spec *job.Spec) bool { return spec.Untimed() && l.Rate == 0 }

// Suspect is a range of items in which a unit fails.
type Suspect struct {
	Range job.Range
	// Limit is the largest piece to cut from it; 0 is 1 as well, for a unit that has failed alone once; -1 marks a unit
	// that has failed alone twice and may not be skipped.
	Limit int64
}

// MaxRates bounds Learned.Rates.
const MaxRates = 32

// MaxPrepares bounds Learned.Prepares.
const MaxPrepares = 16

// Actor is one of the three deterministic state machines. Step decides and applies its own facts; Apply folds one fact
// into durable state and is the only place where durable state changes; Recover is called once after the last Apply and
// re-issues what is outstanding. Digest is a hash of the durable state. None of them blocks, reads a clock or keeps a reference to the
// message.
type Actor interface {
	Step(now quantity.Instant, in Message, out *Out)
	Apply(f Fact)
	Recover(now quantity.Instant, out *Out)
	Digest() uint64
}
