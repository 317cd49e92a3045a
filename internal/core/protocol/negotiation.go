package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Bidder is the agent of one external job; its address has the job's name for an id.
const Bidder Role = Timer + 1

// Zone <-> the agent of an external job (JASDA, arXiv 2510.14599; under SJA the same messages carry signals of interest and the picked
// job's piece). Soft: a round forgotten in a crash is announced again under a new number, and a variant is complete, so an agent that dies
// after it won changes nothing.
const (
	// Attend: an agent has come or gone: Job, Session, Attendance. Bidder -> zone. The latest session of a job counts.
	Attend Kind = iota + 112
	// Announce a round to an agent: Job, Session, Call. Zone -> bidder.
	Announce
	// Answer a round: Job, Session, Proposal. Bidder -> zone. The first answer counts.
	Answer
	// Told: what became of an answer, or of a subjob that was won: Job, Session, News. Zone -> bidder.
	Told
)

// Wanted is what a round asks an agent for.
type Wanted uint8

const (
	// Bids: variants that compete (mechanism jasda). What wins is sold as it was declared.
	Bids Wanted = iota
	// Interest: which of the windows the job could use (mechanism sja). Nothing is sold by it: of a variant only the window counts,
	// and for a policy that orders by it how much of the window the piece would use.
	Interest
	// Subjob: the piece for the one window that the policy has picked the job for, cut by its progress as it is now. No variant: the
	// job declines.
	Subjob
)

var wantedNames = [...]string{"bids", "interest", "subjob"}

// String is the name on the wire and for people.
func (w Wanted) String() string {
	if int(w) < len(wantedNames) {
		return wantedNames[w]
	}
	return "unknown"
}

// Call is a round as a job hears of it: everything it needs to propose variants, and nothing about other jobs.
type Call struct {
	Round  uint64
	Wanted Wanted
	// Closes is when the answers are cleared at the latest.
	Closes quantity.Instant
	// Most variants are looked at for each window.
	Most int
	// Free are the job's units for sale, in order, the first MaxFree stretches of them. Of a chain only the first counts.
	Free job.Ranges
	// Left is how many units are neither committed nor claimed.
	Left int64
	// First: nothing was committed yet, so a piece restores nothing.
	First bool
	// Memory is what memory kills have taught to multiply the job's profile by, Pace how long its subjobs take over what was
	// planned for them, as far as the scheduler adds to a plan; in parts per thousand.
	Memory, Pace int64
	// Windows on offer, those the job can not use for its memory or kind left out.
	Windows []Advert
}

// MaxFree bounds the stretches of free work in a call.
const MaxFree = 64

// Attendance says whether an agent is there.
type Attendance struct{ Present bool }

// Proposal answers a round. No variants: the job is not interested, or it declines.
type Proposal struct {
	Round    uint64
	Variants []Variant
}

// News is what became of an answer to a round, or of a subjob that was won.
type News struct {
	Round   uint64
	Notices []Notice
}

// Body marks what zone and agent tell each other.
func (*Call) Body()       {}
func (*Attendance) Body() {}
func (*Proposal) Body()   {}
func (*News) Body()       {}

// Advert is one window as a job hears of it.
type Advert struct {
	Window uint64
	Slice  job.SliceID
	// Profile of the slice, and how fast the job runs there in parts per thousand.
	Profile    string
	Speed      int64
	Capacity   trp.Vector
	Start, End quantity.Instant
	// Open: nothing is known to come at its end, which is only as far as windows are sold.
	Open bool
}

// Variant is one proposed subjob: what, where, when, and what the job says it is worth to it.
type Variant struct {
	// ID is the agent's own number for it; no two in one answer are the same.
	ID     uint32
	Window uint64
	Range  job.Range
	Start  quantity.Instant
	// Run is the planned time of the work itself; Wall adds restore and checkpoint, without the grace.
	Run, Wall time.Duration
	// Demand is the memory the job thinks it needs. The scheduler takes what the profile says where that is more.
	Demand trp.Vector
	// Option is one of the job's own, empty for none (job.Spec.Options).
	Option string
	// Score is what the job declares, in millionths: 0 to 1,000,000.
	Score int64
}

// NoticeKind is what an agent is told.
type NoticeKind uint8

const (
	// Awarded: the variant has won, and its node is asked for the place. It runs unless the node refuses, of which no notice
	// follows: the work is free again in the job's next call.
	Awarded NoticeKind = iota + 1
	// Planned: it is part of the best plan but begins too late to be sold now; the window is announced again.
	Planned
	// Lost: others were worth more.
	Lost
	// Denied: it breaks a rule. Text says which.
	Denied
	// Concluded: a subjob that was won has ended.
	Concluded
)

var noticeNames = [...]string{"", "awarded", "planned", "lost", "denied", "concluded"}

// String is the notice's name on the wire and for people.
func (k NoticeKind) String() string {
	if int(k) < len(noticeNames) {
		return noticeNames[k]
	}
	return "unknown"
}

// Notice is what became of one variant, or of one subjob.
type Notice struct {
	Kind    NoticeKind
	Window  uint64
	Variant uint32
	Text    string
	// Score is what the scheduler made of the variant, Clearing what the winner that was in its way had; in millionths.
	Score, Clearing int64
	// Of a subjob that has ended: what counts of it, how it ended, how long it ran, and its peak.
	Token   job.Token
	Range   job.Range
	Outcome job.Outcome
	Ran     time.Duration
	Peak    trp.Vector
}

// Bid is what was declared for a subjob that was sold in a round, kept with its claim to be held against what is observed.
// The zero value is a subjob that nobody bid for.
type Bid struct {
	// Score declared, Calibrated by the job's record, and Weight that it won with; all in millionths.
	Score, Calibrated, Weight int64
	// Since is when the job's wait had begun: if the subjob never starts, it counts from there again.
	Since quantity.Instant
	// Left is how many units were for sale when it was declared, Urgency how pressing the job's deadline then was.
	Left, Urgency int64
	// Price in credits that its queue has paid for it.
	Price int64
	// Option of the variant.
	Option string
}

// Trust is what declared against observed has shown so far. The zero value is nothing yet.
type Trust struct {
	// Error is the weighted mean of |declared - observed| of the score, History that of the observed; in millionths.
	Error, History int64
	// Seen subjobs, and the slice-time in milliseconds that was typically at risk in one.
	Seen, Risk int64
	// Pace is the mean of observed over planned run time, in parts per thousand.
	Pace int64
	// Runs whose peak was observed; Excess how many of them passed what theta promised; Evidence against theta: the natural
	// logarithm of an e-value, in millionths.
	Runs, Excess, Evidence int64
}

// Calibration is what the market keeps of a queue.
type Calibration struct {
	Queue string
	Trust Trust
	// Credits it may bid with, refilled up to the instant Refilled.
	Credits  int64
	Refilled quantity.Instant
	// Archived is what its jobs that only the archive keeps have attained, in MiB-milliseconds.
	Archived int64
}
