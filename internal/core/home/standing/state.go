// Package lease is the unsettled claims of one job, and what its ledger knows of each since it came up.
package lease

import (
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	// MostStoring is how long a home waits beyond a lease's end for what its subjob has left to be stored, as long as its node says that
	// it is (ADR 0049). A store that is away for longer costs a piece of work, and no more than that.
	MostStoring = 10 * time.Minute
	// MostRemaining is how long a home waits beyond a lease's end for processes that outlived it. What outlives that too (in a driver
	// that hangs) keeps its slice and not its job.
	MostRemaining = 10 * time.Minute
)

// Lease is what the ledger knows of one claim since it came up. Soft. Invariant: at most one extension is unanswered, and until it is
// answered the lease knows the claim as it was before.
type Lease struct {
	token job.Token
	// known: the node has confirmed it. sent: when Redeem, Stop or Extend was last sent.
	known bool
	sent  quantity.Instant
	// running since, 0 if not heard of; progress last reported.
	running  quantity.Instant
	progress int64
	// storing is when its node said last that it has ended and what it left is being stored; 0: it has not.
	storing quantity.Instant
	// remains is when its node last reported processes of it that should be gone; 0: never.
	remains quantity.Instant
	// tried is the end of the lease for which a continuation or extension was last considered.
	tried quantity.Instant
	// ask is an extension that is not answered yet, before what the claim was without it.
	ask    uint64
	before struct {
		rng  job.Range
		end  quantity.Instant
		peak trp.Peak
	}
	// won is the ask that it came from, 0 if that was before the ledger came up.
	won uint64
	// course of a gang over several nodes; nil until something is known of it, and for a subjob on one node.
	course *gang.Course
	// withdrawn: the node is asked to give it up, if it has not begun, for something better.
	withdrawn bool
}

// Token of the claim.
func (l *Lease) Token() job.Token { return l.token }

// WonBy is the ask that it came from, 0 if that was before the ledger came up.
func (l *Lease) WonBy() uint64 { return l.won }

// Redeemed notes the ask that the claim came from, and that its node is told of it.
func (l *Lease) Redeemed(now quantity.Instant, ask uint64) { l.sent, l.won = now, ask }

// Sent is when the last message that its node must answer was sent, 0 if one is due at once.
func (l *Lease) Sent() quantity.Instant { return l.sent }

// Send notes that its node is told now.
func (l *Lease) Send(now quantity.Instant) { l.sent = now }

// Known says whether the node has confirmed it.
func (l *Lease) Known() bool { return l.known }

// Confirm notes that the node has confirmed it.
func (l *Lease) Confirm() { l.known = true }

// Running since then; 0 if that was not heard of.
func (l *Lease) Running() quantity.Instant { return l.running }

// Begin notes that it runs since then.
func (l *Lease) Begin(at quantity.Instant, known bool) {
	l.known, l.running, l.withdrawn = known, at, false
}

// Progress is the unit up to which its subjob last said that it is.
func (l *Lease) Progress() int64 { return l.progress }

// Report notes how far its subjob is.
func (l *Lease) Report(progress int64) { l.progress = max(l.progress, progress) }

// Reported is the unit up to which it reports completion. Units beyond its claim are not shown.
func (l *Lease) Reported(c *protocol.Claim) int64 {
	return max(c.Range.From, min(l.progress, c.Range.To))
}

// Stores says whether its subjob has ended and what it left is being stored.
func (l *Lease) Stores() bool { return l.storing != 0 }

// Store notes that its node says so.
func (l *Lease) Store(now quantity.Instant) { l.storing = now }

// Remains is when its node last reported processes of it that should be gone; 0: never.
func (l *Lease) Remains() quantity.Instant { return l.remains }

// Remain notes that its node says so.
func (l *Lease) Remain(now quantity.Instant) { l.remains = now }

// Extend keeps what a claim is, before its node is asked to move it; the claim is extended after that.
func (l *Lease) Extend(c *protocol.Claim) {
	l.before.rng, l.before.end, l.before.peak = c.Range, c.End, c.Peak
}

// Extending notes under what number that is asked.
func (l *Lease) Extending(now quantity.Instant, ask uint64) { l.ask, l.sent = ask, now }

// Extension is that number; 0: no extension waits for an answer.
func (l *Lease) Extension() uint64 { return l.ask }

// Extended says whether an answer is the one that was waited for.
func (l *Lease) Extended(ask uint64) bool {
	was := l.ask == ask
	if was {
		l.ask = 0
	}
	return was
}

// Before is what the claim was before it was extended.
func (l *Lease) Before() (r job.Range, end quantity.Instant, peak trp.Peak) {
	return l.before.rng, l.before.end, l.before.peak
}

// BidsAt is when its subjob bids for the window that follows its own: late enough to judge the present queue, early enough for the program
// to see its new end. Never if it does not.
func (l *Lease) BidsAt(c *protocol.Claim, grace time.Duration) quantity.Instant {
	if l.running == 0 || l.ask != 0 || l.tried == c.End || c.End == quantity.Never || len(c.Also) > 0 {
		return quantity.Never
	}
	return c.End.Add(-grace - max(2*time.Second, c.Wall()/4))
}

// Bids notes that it bids: not again for the same end.
func (l *Lease) Bids(c *protocol.Claim) { l.tried = c.End }

// Withdrawn says whether its node is asked to give it up unless it has begun.
func (l *Lease) Withdrawn() bool { return l.withdrawn }

// Withdraw makes its node be asked to withdraw it, unless it has begun or is to move; it reports whether it is.
func (l *Lease) Withdraw() bool {
	l.withdrawn = l.withdrawn || l.running == 0 && l.ask == 0
	return l.running == 0 && l.ask == 0
}

// Course of a gang's claim, begun where there is none: after a crash its members are asked again.
func (l *Lease) Course(c *protocol.Claim) *gang.Course {
	if l.course == nil {
		l.course = gang.NewCourse(len(c.Members))
	}
	return l.course
}

// Settled says that nothing about it waits for an answer; of a job that is not to end.
func (l *Lease) Settled() bool {
	return l.known && l.ask == 0 && !l.withdrawn && (l.course == nil || l.course.Broken() == "")
}

// GivenUp is when it is given up if its node stays silent; its subjob is to be over at end.
func (l *Lease) GivenUp(end quantity.Instant, skew time.Duration) quantity.Instant {
	return max(end, min(l.storing, end.Add(MostStoring)), min(l.remains, end.Add(MostRemaining))).Add(skew)
}

// StoredTooLong reports whether its node reported to the last that its output is being stored.
func (l *Lease) StoredTooLong(end quantity.Instant) bool { return l.storing >= end.Add(MostStoring) }

// RemainedTooLong reports whether its node reported to the last that processes remain.
func (l *Lease) RemainedTooLong(end quantity.Instant) bool {
	return l.remains >= end.Add(MostRemaining)
}
