// Package status is what people are shown: plain values without behaviour, filled by the actors' views and turned
// into API messages, tables and pictures by the face wing.
package status

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Job is one job as people see it.
type Job struct {
	Name job.ID
	// Generation of its present life. It grows with every life, and is no count of them.
	Generation job.Generation
	Queue      string
	Kind       job.Kind
	// Saves: a rigid job goes on from checkpoints.
	Saves    bool
	Priority int32
	State    job.State
	// Reason a wait goes on or a final state was reached.
	Reason string
	// Progress is committed units of Total; Skipped of them were given up as bad.
	Progress, Total, Skipped int64
	// Reported is how many units more the running subjobs say they have completed. They count once committed.
	Reported int64
	Unit     string
	// Published is what is committed and published, except skipped units: what `sluice output` covers. Only where it is shown with its
	// subjobs.
	Published job.Ranges
	// Subjobs committed; Running now; Lost ended without progress.
	Subjobs, Running, Lost int
	Submitted              quantity.Instant
	// Started is the first subjob's start, Ended the final state's time; 0 while not yet.
	Started, Ended quantity.Instant
	// Wait is the time from submission to the first start, or to now.
	Wait time.Duration
	// StartEarly..FinishLate estimate start and finish as a range; 0 unknown.
	StartEarly, StartLate, FinishEarly, FinishLate quantity.Instant
	// RateP50 and RateP95 are learned run times of a unit at speed 1.
	RateP50, RateP95 time.Duration
	// Measuring: its job file gives no time of a unit and none is known yet; when it finishes nobody can say.
	Measuring bool
	// Prepare is what a start is planned to take at its node before the process begins. PrepareSeen: earlier starts were
	// observed; otherwise it is a margin for unpacking the work directory.
	Prepare     time.Duration
	PrepareSeen bool
	MemoryScale int64
	// Slices that it has now, those of all its subjobs.
	Slices []job.SliceID
	// Hints are what its owner should know of it, such as that it takes much longer than it declares. Only where it is over, or shown with
	// its subjobs.
	Hints []string
	// History of subjobs in order of start; bounded: HistoryDropped older ones are only counted.
	History        []Subjob
	HistoryDropped int
	// Checkpoints are the subjobs whose checkpoints are needed: of the newest that counts, and of those that running ones began from. Only
	// where it is shown with its subjobs.
	Checkpoints []job.Token
	Spec        *job.Spec
	// Trust in what the job declares, and Spread of its profile in parts per thousand; zero under a market that does not
	// negotiate.
	Trust  Trust
	Spread int64
	// Profile says where its profile of memory is from.
	Profile Profile
}

// Profile says where a job's profile of memory is from.
type Profile struct {
	// Source is declared or taught by its template.
	Source forecast.Source
	// Runs of its template that have taught it, or by which what was declared was raised; 0: none.
	Runs int64
	// Spread in parts per thousand, where it was widened after it was passed too often; 0: it was not.
	Spread int64
}

// String is the source for people, such as "taught by 120 runs of its template".
func (p Profile) String() string {
	runs := "runs"
	if p.Runs == 1 {
		runs = "run"
	}
	text := "declared"
	switch {
	case p.Source == forecast.Taught:
		text = fmt.Sprintf("taught by %d %s of its template", p.Runs, runs)
	case p.Runs > 0:
		text = fmt.Sprintf("declared, raised to what %d %s of its template used", p.Runs, runs)
	}
	if p.Spread > 0 {
		text += fmt.Sprintf("; widened %g times, for it was passed too often", float64(p.Spread)/1000)
	}
	return text
}

// Trust is what declared against observed has shown of a job or a queue.
type Trust struct {
	protocol.Trust
	// Believed is how far a declared score counts, in millionths; the rest is what was observed so far.
	Believed int64
}

// Publishing is the outcome of a subjob that counts and whose output is not known to be in its place: Committed does not show it yet.
const Publishing = "publishing"

// Skipped is the outcome of a subjob whose unit is given up as bad: it is committed, and nothing of it is published.
const Skipped = "skipped"

// Subjob is one piece that ran or runs.
type Subjob struct {
	Token job.Token
	// Slice is the first of Slices: a gang has several.
	Slice  job.SliceID
	Slices []job.SliceID
	// Members of a gang over several nodes, the first with this Token; nil where all is on one node. Nobody writes to them.
	Members []protocol.Member
	Window  uint64
	Range   job.Range
	// Committed is the part that counts.
	Committed job.Range
	// Progress is the unit up to which a running subjob says it is complete, at least Range.From; 0 once it has ended.
	Progress        int64
	PlannedStart    quantity.Instant
	PlannedEnd      quantity.Instant
	Start, End      quantity.Instant
	Predicted, Peak quantity.Amount
	// Outcome in a word, such as done, starting, or Publishing.
	Outcome string
	Detail  string
	// Prepare is what was gone of its time when its process began; 0 while it is not known.
	Prepare time.Duration
	// Waited is how long of its run it could not go on for want of a processor.
	Waited time.Duration
	// Startup is what its program took to be ready, where it says so; Stayed: it went on in one that was there.
	Startup time.Duration
	Stayed  bool
	// LeftNothing: it is over, and left neither output nor checkpoint nor a word in its logs.
	LeftNothing bool
	Running     bool
	// Bid it was won with; nil where nobody bid.
	Bid *protocol.Bid
}

// Slice is one slice as people see it.
type Slice struct {
	Slice protocol.Slice
	Node  job.NodeID
	// State: idle, running, reserved, quarantined, unconfirmed.
	State  string
	Reason string
	// Job and Until of what runs now.
	Job   job.ID
	Until quantity.Instant
	// Reservations in order of start, leases included.
	Reservations []protocol.Reservation
}

// Cut is what a reservation that cuts running subjobs short does to one of them.
type Cut struct {
	Job    job.ID
	Token  job.Token
	Slice  job.SliceID
	Slices int
	Kind   job.Kind
	Range  job.Range
	// Reported is how many units of Range it says it has completed: they count.
	Reported int64
	// Started is when it began, 0 if it has not; End when its lease ends, At when it would end now.
	Started, End, At quantity.Instant
	// Withdrawn: it has not begun, so nothing but its place is lost.
	Withdrawn bool
	// Ran is how long it will have run on each of its slices, AtRisk how much of that is done again: all of it for a rigid job,
	// otherwise what lies behind the last unit it reported, unless it leaves a checkpoint when it is warned.
	Ran, AtRisk time.Duration
}

// Costly says whether a person should be asked before: the work is not divisible, or a minute and more of it may be lost.
func (c *Cut) Costly() bool {
	return !c.Withdrawn && (c.Kind == job.Rigid || c.AtRisk >= time.Minute)
}

// Window is one advertised gap.
type Window struct {
	ID         uint64
	Slice      job.SliceID
	Start, End quantity.Instant
	// Until is what ends it.
	Until protocol.ReservationKind
	// State: open, pending (a job was picked), unanswered (backing off).
	State string
	// Answers counts jobs that signalled interest in the last round, Asked those that were asked.
	Answers, Asked int
	// Why nobody took it, when unanswered.
	Reason string
}

// Queue is a queue with its use.
type Queue struct {
	Queue            protocol.Queue
	Pending, Running int
	// Attained is memory-seconds in GiB-seconds over all its jobs.
	Attained float64
	Held     int
	// Trust in its jobs, which a new one begins with, and the Credits it may bid with.
	Trust   Trust
	Credits int64
}

// Foresight is how the predicted ranges of starts have come out: each is to hold 80% of the waits.
type Foresight struct {
	// Waits that are over, of jobs with a prediction; Sooner and Later are those that ended outside their range.
	Waits, Sooner, Later int64
}

// Reason is one cause of waiting with how often it decided.
type Reason struct {
	Text  string
	Count int64
	Last  quantity.Instant
}

// Explanation says why a job waits or where it ran: counts, never a log.
type Explanation struct {
	Job     Job
	Summary string
	Reasons []Reason
	// Slices lists, per slice, what the job would need to run there.
	Slices []SliceFit
	// Nearest is the request that would fit, for a job that can never run.
	Nearest string
	// Prospect is how the job stands against others, and when it is likely to be served, in one sentence; empty for a job that
	// does not wait.
	Prospect string
	// Losses are what it has bid for and lost since it was last served, one for each kind of slice, the latest first. Jobs bid
	// under mechanism jasda.
	Losses []Loss
	// Rank is its place in the policy's order, under mechanism sja; its zero value, if there is none.
	Rank Rank
	// Home is the zone that the job is at home in, or would be; empty where there is one zone.
	Home job.ZoneID
	// AirlockSteps are what was done to its subjobs of late for the sake of their hosts' memory, in order.
	AirlockSteps []AirlockStep
	// Reclaims are what was decided about its subjobs of late for workloads outside Sluice, in order.
	Reclaims []ReclaimStep
}

// Zone is one zone as people see it.
type Zone struct {
	ID    job.ZoneID
	Nodes []job.NodeID
	// Slices of its nodes; Homed counts the unfinished jobs that have their home there, of these Waiting (paused ones too) and Running.
	Slices, Homed, Waiting, Running int
	// Drained: it gets no new homes, for good. Over counts the finished jobs whose record it still has: while it has any, or is home to
	// one, it stays in the configuration.
	Drained bool
	Over    int
	// Search is the zone's report on its search for places, completed by the gate; nil where windows are offered.
	Search *Search
}

// Search is what a zone, and the gate, know of the search for places in it.
type Search struct {
	// Tickets search there, Parked ones of jobs at home there wait. Alive: one of its nodes is usable.
	Tickets, Parked int
	Alive           bool
	// Rooms by size class, the smallest first.
	Rooms []Room
	// Age of the zone's last digest at the gate; negative: it has none.
	Age time.Duration
}

// Room is what is free for one size class: fragments large enough, tickets that look for one there, and the share of draws that
// the gate gives the zone for it, in parts per million.
type Room struct {
	Size         quantity.Amount
	Free, Demand int
	Share        int64
}

// Loss is the windows of one kind of slice that a job has bid for and lost.
type Loss struct {
	// Profile of the slices, and Slice of the latest of these windows.
	Profile string
	Slice   job.SliceID
	// Count of them, the latest at Last. What follows is of that one.
	Count int64
	Last  quantity.Instant
	// Score, in millionths, and Weight in clearing of the job's heaviest variant.
	Score, Weight int64
	// Winner held most of its time, by weight, and Winners did together, which weighed WinnersWeight. What is missing to Weight is
	// what the job lost by; it may be nothing where Late: a winner's job was late and went first ("starved" in answers).
	Winner                    job.ID
	WinnerQueue               string
	WinnerScore, WinnerWeight int64
	Winners                   int
	WinnersWeight             int64
	Late                      bool
}

// By is what the job lost by, in the measure of weights; at most 0 where it did not lose by its weight.
func (l *Loss) By() int64 { return l.WinnersWeight - l.Weight }

// Rank is a job's place in the policy's order among those that wait for the same kind of slice.
type Rank struct {
	// Place from 1 on, 0 for none, of Of jobs. About: both are estimates, from a sample of very many jobs.
	Place, Of int
	About     bool
	Policy    string
	// Profile of the slices, and Slice one of them.
	Profile string
	Slice   job.SliceID
	// Latest window that the job could have used and another got; its Winner is empty if there was none lately.
	Latest Given
}

// Given is a window that a job got.
type Given struct {
	Slice       job.SliceID
	Length      time.Duration
	At          quantity.Instant
	Winner      job.ID
	WinnerQueue string
}

// SliceFit is how a job and a slice match.
type SliceFit struct {
	Slice job.SliceID
	Fits  bool
	// Least is the least memory the job's next piece needs; Capacity what the slice has.
	Least, Capacity quantity.Amount
	// Reach is how far the next piece could go there.
	Reach job.Range
	Why   string
}

// Negotiation counts what a market that negotiates has done since it came up.
type Negotiation struct {
	// Rounds cleared; Calls sent to agents, Answers that came in time, and Missed closings.
	Rounds, Calls, Answers, Missed int64
	// Variants looked at; Denied for breaking a rule; Awards made; Planned for later.
	Variants, Denied, Awards, Planned int64
	// Declined: a job that the policy picked cut no piece that fits, and the next in order was asked.
	Declined int64
	// Withdrawn before they began, for something better.
	Withdrawn int64
	// Of windows cleared together: the weight that won, the bound that no plan passes, and what clearing them one after another would have
	// lost.
	Value, Bound, Regret int64
}

// Plus is both together.
func (n Negotiation) Plus(o Negotiation) Negotiation {
	return Negotiation{
		Rounds: n.Rounds + o.Rounds, Calls: n.Calls + o.Calls, Answers: n.Answers + o.Answers, Missed: n.Missed + o.Missed,
		Variants: n.Variants + o.Variants, Denied: n.Denied + o.Denied, Awards: n.Awards + o.Awards, Planned: n.Planned + o.Planned,
		Declined: n.Declined + o.Declined, Withdrawn: n.Withdrawn + o.Withdrawn,
		Value: n.Value + o.Value, Bound: n.Bound + o.Bound, Regret: n.Regret + o.Regret,
	}
}
