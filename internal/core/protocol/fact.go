package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// FactKind is what a fact records. Numbers are part of the stored format: they are never reused.
type FactKind uint8

// Facts of the gate.
const (
	// JobAccepted: Job, Spec, Request, Digest, Zone, Epoch, Generation (its first life), At, Flag (an archived job is taken
	// back: the facts behind it in the same step say the rest).
	JobAccepted FactKind = iota + 1
	// JobHomed: the zone has acknowledged: Job, Epoch.
	JobHomed
	// JobClosed: Job, Verdict, At.
	JobClosed
	// JobForgotten: retention is over, or a person deleted or replaced it: Job, Generation (its last life). Its files and its
	// home's record are to go; until JobPurged a new job of that name waits. Generation 0, as written before there were lives:
	// nothing is waited for. In snapshots one without Job brings the highest generation that was ever forgotten.
	// Flag: it was archived.
	JobForgotten
	// QueueSet: Queue.
	QueueSet
	// JobDropping: its owner cancelled it; the zone is told until it is closed: Job, Text, Request, At (when; 0 before version 9 of the
	// format: not known).
	JobDropping
	// JobHeld: paused (Flag) or resumed: Job, Flag.
	JobHeld
	// JobRequeued begins another life of a job that is over: Job, Generation, Spec (nil: as it was), Request, At.
	JobRequeued
	// JobPurged: neither files nor a home are left of lives up to Generation: Job, Generation.
	JobPurged
	// JobArchived: the archive has what the gate keeps of a job that is over, and the gate lets go of it: Job, Generation, Count (how
	// many changes the archive has counted). In snapshots without Job: Count, how many jobs are kept by the archive alone; and
	// with Flag: Count, the most changes that it has counted.
	JobArchived
	// JobDrawn: its home is drawn, where nothing was known of any zone that could run it when it was accepted: Job, Zone, Epoch. Only with
	// several zones.
	JobDrawn
	// ZoneDrained: nothing is at home in the zone any more, from now on and for good: Zone.
	ZoneDrained
	// Rehomed: a job leaves its home, which is drained, for another: Job, Zone (empty: no other is known that could run it; JobDrawn
	// follows), Epoch (the next one). The old home goes on until it has surrendered the job.
	Rehomed
	// JobDeparted: the old home has forgotten a job that was surrendered: Job, Generation, Zone, Epoch (the old home's). In snapshots with
	// Flag: it has not said so yet.
	JobDeparted
)

// Facts of a zone.
const (
	// HomeTaken: Job, Epoch, Generation, Spec, Queue, At (submitted).
	HomeTaken FactKind = iota + 32
	// Claimed: Job, Epoch, Generation, Token, Node, Slice, Also, Members, Speed, Range, Start, End, Demand, Peak, Plan, Bid, At (when it
	// was asked for). [from,to) is sold under this token.
	Claimed
	// ClaimExtended: Job, Token, Range, End, Peak (zero: as it was).
	ClaimExtended
	// Released: Job, Token, Result (nil if none came), Text, At. Nothing of it counts.
	Released
	// Committed: Job, Token, Range (what counts), Result, At, Skipped (the unit alone that keeps failing is skipped).
	// This record itself publishes the output and the checkpoint.
	Committed
	// Calibrated: Job, Learned. What was learned from an ended subjob.
	Calibrated
	// Ended: Job, Verdict, At. Final.
	Ended
	// HomeDropped: the job's record is forgotten: Job, Generation. No life of it up to that one is taken home again. Count:
	// what it had attained, if it was archived: that counts for its queue no more.
	HomeDropped
	// HomeHeld: Job, Flag.
	HomeHeld
	// QueueKnown: Queue.
	QueueKnown
	// HomeKept: Record. The whole state of one job, in snapshots and for the archive. Flag: an archived job is taken back.
	HomeKept
	// QueueCalibrated: Standing. What the market has learned of a queue, and its credits.
	QueueCalibrated
	// Taught: Lesson. What a finished job has shown of its template; in snapshots all that is remembered of one.
	Taught
	// HomeReopened: another life of a job that was over begins, with what is committed: Job, Generation, Spec, At.
	HomeReopened
	// OutputPublished: Job, Token. Output and checkpoint of what was committed are where people and the next subjob find them.
	OutputPublished
	// HomeArchived: the archive has the record of a job that is over, and the zone lets go of it: Job, Generation.
	HomeArchived
	// HomeLeaving: the job is given up to another zone, and nothing more of it is sold here: Job, Generation, Text (why, for people).
	HomeLeaving
)

// Facts of a node.
const (
	// Booted: Epoch. Before the node answers anyone. In snapshots also Reservation.ID, the last one given out.
	Booted FactKind = iota + 64
	// LeaseMade: Token, Job, Epoch (home's), Generation, Zone (the home), Slice, Also, Range, Start, End, Demand, Peak, Plan, Rank (what
	// it is worth beside others). The token is spent. In snapshots also Text, why its end was moved closer.
	LeaseMade
	// LeaseExtended: Token, Range, End, Peak (zero: as it was).
	LeaseExtended
	// Truncated: Token, End, Text.
	Truncated
	// SubjobStarted: Token, At.
	SubjobStarted
	// SubjobEnded: Token, Result, Flag (nothing was given to the executor). Its process tree is confirmed gone, and what counts of it is
	// stored.
	SubjobEnded
	// ResultSettled: Token, Range (committed part; empty if none). The home has it.
	ResultSettled
	// LeaseGone: Token. Directories are settled; nothing of the lease is left.
	LeaseGone
	// ReservationMade: Reservation.
	ReservationMade
	// ReservationGone: Reservation.ID.
	ReservationGone
	// Quarantined: Slice, Text, At, Token (of the subjob whose processes are the reason). Lifted by QuarantineLifted.
	Quarantined
	// QuarantineLifted: Slice.
	QuarantineLifted
	// SliceFailed: Slice, Fault. Its GPU fails, so it is not sold until SliceMended.
	SliceFailed
	// SliceMended: Slice, Text (why, for people).
	SliceMended
	// SubjobVacated: Token. Its process tree is confirmed gone, and what it has left is being stored: its time is free again. SubjobEnded
	// follows with how it ended.
	SubjobVacated
)

// Fact is one durable decision of one actor. Recovery applies facts in order and decides nothing again.
type Fact struct {
	Kind FactKind
	// Actor whose fact it is.
	Actor Address

	Job            job.ID
	Epoch          uint32
	Generation     job.Generation
	Token          job.Token
	Node           job.NodeID
	Zone           job.ZoneID
	Slice          job.SliceID
	Speed          int64
	Also           []job.SliceID
	Members        []Member
	Range          job.Range
	At, Start, End quantity.Instant
	Demand         trp.Vector
	Plan           Plan
	Flag           bool
	Request, Text  string
	Digest         string
	Spec           *job.Spec
	Queue          *Queue
	Verdict        job.Verdict
	Result         *job.Result
	Learned        *Learned
	Skipped        bool
	Reservation    *Reservation
	Record         *Record
	Bid            *Bid
	Standing       *Standing
	Lesson         *Lesson
	// Count is a number that a kind's comment explains.
	Count int64
	Rank  Rank
	Peak  trp.Peak
	Fault *health.Fault
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
}

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
// re-issues what is outstanding. Digest is a hash of the durable state. None of them blocks, reads a clock or keeps in.
type Actor interface {
	Step(now quantity.Instant, in Message, out *Out)
	Apply(f Fact)
	Recover(now quantity.Instant, out *Out)
	Digest() uint64
}
