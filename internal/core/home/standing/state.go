// Package standing is the unsettled claims of one job, and what its ledger knows of each since it came up.
package standing

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

// ClaimState is what the ledger has heard of one claim since it came up, and what it has said. Soft; the lease is the node's.
// Invariant: at most one extension is unanswered, and until it is answered the state knows the claim as it was before.
type ClaimState struct {
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
func (st *ClaimState) Token() job.Token { return st.token }

// WonBy is the ask that it came from, 0 if that was before the ledger came up.
func (st *ClaimState) WonBy() uint64 { return st.won }

// RedeemSent notes the ask that the claim came from, and that its node is told of it now.
func (st *ClaimState) RedeemSent(now quantity.Instant, ask uint64) { st.sent, st.won = now, ask }

// Sent is when the last message that its node must answer was sent, 0 if one is due at once.
func (st *ClaimState) Sent() quantity.Instant { return st.sent }

// Send notes that its node is told now.
func (st *ClaimState) Send(now quantity.Instant) { st.sent = now }

// Known says whether the node has confirmed it.
func (st *ClaimState) Known() bool { return st.known }

// Confirm notes that the node has confirmed it.
func (st *ClaimState) Confirm() { st.known = true }

// Running since then; 0 if that was not heard of.
func (st *ClaimState) Running() quantity.Instant { return st.running }

// Begin notes that it runs since then.
func (st *ClaimState) Begin(at quantity.Instant, known bool) {
	st.known, st.running, st.withdrawn = known, at, false
}

// Progress is the unit up to which its subjob last said that it is.
func (st *ClaimState) Progress() int64 { return st.progress }

// Report notes how far its subjob is.
func (st *ClaimState) Report(progress int64) { st.progress = max(st.progress, progress) }

// Reported is the unit up to which it reports completion. Units beyond its claim are not shown.
func (st *ClaimState) Reported(c *protocol.Claim) int64 {
	return max(c.Range.From, min(st.progress, c.Range.To))
}

// Stores says whether its subjob has ended and what it left is being stored.
func (st *ClaimState) Stores() bool { return st.storing != 0 }

// Store notes that its node says so.
func (st *ClaimState) Store(now quantity.Instant) { st.storing = now }

// Remains is when its node last reported processes of it that should be gone; 0: never.
func (st *ClaimState) Remains() quantity.Instant { return st.remains }

// Remain notes that its node says so.
func (st *ClaimState) Remain(now quantity.Instant) { st.remains = now }

// Extend keeps what a claim is, before its node is asked to move it; the claim is extended after that.
func (st *ClaimState) Extend(c *protocol.Claim) {
	st.before.rng, st.before.end, st.before.peak = c.Range, c.End, c.Peak
}

// Extending notes under what number that is asked.
func (st *ClaimState) Extending(now quantity.Instant, ask uint64) { st.ask, st.sent = ask, now }

// Extension is that number; 0: no extension waits for an answer.
func (st *ClaimState) Extension() uint64 { return st.ask }

// Extended says whether an answer is the one that was waited for.
func (st *ClaimState) Extended(ask uint64) bool {
	was := st.ask == ask
	if was {
		st.ask = 0
	}
	return was
}

// Before is what the claim was before it was extended.
func (st *ClaimState) Before() (r job.Range, end quantity.Instant, peak trp.Peak) {
	return st.before.rng, st.before.end, st.before.peak
}

// BidsAt is when its subjob bids for the window that follows its own: late enough to judge the present queue, early enough for the program
// to see its new end. Never if it does not.
func (st *ClaimState) BidsAt(c *protocol.Claim, grace time.Duration) quantity.Instant {
	if st.running == 0 || st.ask != 0 || st.tried == c.End || c.End == quantity.Never || len(c.Also) > 0 {
		return quantity.Never
	}
	return c.End.Add(-grace - max(2*time.Second, c.Wall()/4))
}

// Bids notes that it bids: not again for the same end.
func (st *ClaimState) Bids(c *protocol.Claim) { st.tried = c.End }

// Withdrawn says whether its node is asked to give it up unless it has begun.
func (st *ClaimState) Withdrawn() bool { return st.withdrawn }

// Withdraw makes its node be asked to withdraw it, unless it has begun or is to move; it reports whether it is.
func (st *ClaimState) Withdraw() bool {
	st.withdrawn = st.withdrawn || st.running == 0 && st.ask == 0
	return st.running == 0 && st.ask == 0
}

// Course of a gang's claim, begun where there is none: after a crash its members are asked again.
func (st *ClaimState) Course(c *protocol.Claim) *gang.Course {
	if st.course == nil {
		st.course = gang.NewCourse(len(c.Members))
	}
	return st.course
}

// Settled says that nothing about it waits for an answer; of a job that is not to end.
func (st *ClaimState) Settled() bool {
	return st.known && st.ask == 0 && !st.withdrawn && (st.course == nil || st.course.Broken() == "")
}

// GivenUp is when it is given up if its node stays silent; its subjob is to be over at end.
func (st *ClaimState) GivenUp(end quantity.Instant, skew time.Duration) quantity.Instant {
	return max(end, min(st.storing, end.Add(MostStoring)), min(st.remains, end.Add(MostRemaining))).Add(skew)
}

// StoredTooLong reports whether its node reported to the last that its output is being stored.
func (st *ClaimState) StoredTooLong(end quantity.Instant) bool {
	return st.storing >= end.Add(MostStoring)
}

// RemainedTooLong reports whether its node reported to the last that processes remain.
func (st *ClaimState) RemainedTooLong(end quantity.Instant) bool {
	return st.remains >= end.Add(MostRemaining)
}
