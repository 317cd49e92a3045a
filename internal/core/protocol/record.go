package protocol

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Record is the whole durable state of one job at its home zone. A snapshot stores it in one HomeKept fact; otherwise it
// is built up by the facts since HomeTaken.
type Record struct {
	Job   job.ID
	Epoch uint32
	// Generation of its present life; at least 1.
	Generation job.Generation
	Spec       *job.Spec
	Queue      string
	// Submitted is when this life was asked for.
	Submitted quantity.Instant
	Paused    bool

	// Committed and Claimed are disjoint. Skipped is a subset of Committed.
	Committed, Claimed, Skipped job.Ranges
	// Claims stand: sold and not yet settled, in order of token.
	Claims  []Claim
	Learned Learned
	// Resume is the subjob whose checkpoint the next one starts from; zero at first.
	Resume job.Token
	// Attained is the sum over ended subjobs of memory held times time run, in MiB-milliseconds.
	Attained int64
	// Started is the start of this life's first subjob, 0 before it.
	Started quantity.Instant
	// Past holds every settled subjob, oldest first: committed ones forever, since a repeated Result must find its answer.
	Past    []Past
	Verdict job.Verdict
	Ended   quantity.Instant
	// Unpublished are the committed subjobs whose output is not known to be in its place yet, in order of token. Their ranges
	// lie within Committed.
	Unpublished []Publication
	// Served is when work was last sold, 0 before: the job's age in the market counts from there.
	Served quantity.Instant
	// Length of a chain that declared none (job.Spec.Open) and has ended; 0: it has not.
	Length int64
	// Scores are what the trials of a sweep were worth, for each rung the best first.
	Scores job.Scores
	// Forgiven is how many units earlier lives had skipped: they do not count against this one.
	Forgiven int64
}

// Publication is output that is committed and on its way to its place on its node.
type Publication struct {
	Token job.Token
	Node  job.NodeID
	Range job.Range
}

// Claim is the home's durable mark that a range is sold to one node under one token.
type Claim struct {
	Token job.Token
	// Generation of the life that it was sold to; 0, from before there were lives, is the first.
	Generation job.Generation
	Sale
	// Asked is when its place was asked for, by the home's clock: what the home learned later is not in it. 0 in what older
	// versions stored.
	Asked quantity.Instant
}

// Past is one settled subjob.
type Past struct {
	Claim
	// Committed is the part that counts, empty if nothing does.
	Committed job.Range
	Skipped   bool
	Outcome   job.Outcome
	RealStart quantity.Instant
	RealEnd   quantity.Instant
	Peak      trp.Vector
	Detail    string
	Spent     Spent
	// LeftNothing is job.Result's.
	LeftNothing bool
}

// Spent is what of a subjob's time was no work, as its job.Result has it.
type Spent struct {
	Prepare, Startup, Waited time.Duration
	// Stayed: it went on in a program that was there.
	Stayed bool
}

// Wall is the planned length of the claim without its grace.
func (c *Claim) Wall() time.Duration { return c.Plan.Wall }

// Between is a time at which a subjob of the claim is said to have begun or ended, as far as that can be: not before its place was asked
// for, nor later than now, but for the skew of the clocks.
func (c *Claim) Between(at, now quantity.Instant, skew time.Duration) quantity.Instant {
	return min(max(at, c.Asked.Add(-skew), 1), now.Add(skew))
}

// Worked says whether anything of the job was ever sold, or is kept of earlier lives.
func (r *Record) Worked() bool {
	return len(r.Committed)+len(r.Claimed)+len(r.Skipped)+len(r.Claims)+len(r.Past)+len(r.Unpublished) > 0 || r.Resume != (job.Token{}) ||
		r.Attained != 0 || r.Started != 0 || r.Served != 0 || r.Forgiven != 0 || len(r.Scores) > 0 || r.Length != 0
}

// Zero says whether nothing was learned.
func (l *Learned) Zero() bool {
	return len(l.Rates)+len(l.Prepares)+len(l.Suspects) == 0 && l.Safe == nil && l.LastDetail == "" && l.Peak == (trp.Vector{}) &&
		l.Trust == (Trust{}) &&
		l.Rate|l.Prepare|l.Start == 0 &&
		l.Margin|l.MemoryScale|l.Spread|l.Runs|l.Busy|l.Trials|l.Sampled == 0 && l.FailedAt|l.KilledAt == 0 && l.Failures|l.Kills == 0
}
