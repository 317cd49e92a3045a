package home

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A job that its owner cancels is over within a minute, whatever its programs, their nodes and stores do. The minute counts from the
// gate's durable fact, so a restart of the home does not begin it anew. A node that reports on a claim after it was given up changes
// nothing: its result is refused, and the subjob is stopped.

const (
	// keptGrace is what a subjob of a cancelled job keeps of its grace. The owner wants it gone: a longer grace is for leases that end.
	keptGrace = 30 * time.Second
	// mostCancelling is how long after the cancellation claims that have not ended are given up. The other 10 s of the minute are for
	// messages that are lost and repeated, and for hearing nodes first after a pause of the daemon (hearFirst).
	mostCancelling = 50 * time.Second
)

// Cancel ends a job for its owner: at once if nothing of it runs, else when its last subjob is settled, within a minute.
func (h *Ledger) Cancel(now quantity.Instant, in *protocol.Message, c *protocol.Cancellation, out *protocol.Out) {
	if j := h.Job(in.Job); j != nil && j.lives(in) && !j.rests() {
		h.cancel(now, c.At, j, c.Text, out)
	}
}

// cancel ends a job whose cancellation was asked for at since, 0 if that is not known. Repeated, it keeps the first time.
func (h *Ledger) cancel(now, since quantity.Instant, j *Job, why string, out *protocol.Out) {
	if j.fate().verdict.State.Final() {
		return
	}
	v := job.Verdict{State: job.Cancelled, Reason: why}
	if len(j.work().claims) == 0 && !j.Complete() {
		h.end(now, j, v, out)
		return
	}
	if f := j.makeFate(); f.dropped == 0 {
		if since == 0 || since > now {
			since = now
		}
		f.dropped = since
		h.drop(now, j, v)
	}
}

// drop sets the verdict that a job ends with once its claims are settled, and has its nodes told to stop.
func (h *Ledger) drop(now quantity.Instant, j *Job, v job.Verdict) {
	f := j.makeFate()
	if f.dropping.State == job.Waiting {
		f.stopped = now
	}
	f.dropping = v
	for i := range j.work().leases {
		j.work().leases[i].sent = 0 // Stop goes out with the next look at what is overdue
	}
	h.touch(j)
}

// OverBy is when a job that is cancelled is over at the latest; Never where nobody has cancelled it.
func (j *Job) OverBy() quantity.Instant {
	if f := j.fate(); f.dropped != 0 && !f.verdict.State.Final() && !planted.In(planted.WaitCancelled) {
		return f.dropped.Add(mostCancelling)
	}
	return quantity.Never
}

// abandoned is the reason, for people, for which a claim of a cancelled job is given up.
func (l *Lease) abandoned() string {
	if l.Stores() {
		return fmt.Sprintf("it was cancelled, and what it had left was not stored %v later", mostCancelling)
	}
	return fmt.Sprintf("it was cancelled, and its node had not said %v later that it is gone", mostCancelling)
}

// hurried says whether a subjob of a cancelled job is to be stopped without further grace: it has had keptGrace. One that has ended and
// is being stored is not hurried.
func (l *Lease) hurried(now quantity.Instant, j *Job) bool {
	since := j.fate().dropped
	return since != 0 && j.Spec.Launch.Grace > keptGrace && !l.Stores() && now >= since.Add(keptGrace)
}

// dismiss tells the nodes of a claim that is given up to end its subjobs at once. A node that does not hear it is told again by disown.
func (h *Ledger) dismiss(j *Job, c *protocol.Claim, why string, out *protocol.Out) {
	stop := func(to protocol.Address, t job.Token) {
		h.Send(out, protocol.Message{Kind: protocol.Stop, To: to, Token: t, Job: j.ID, Body: &protocol.Halt{Text: why, Now: true}})
	}
	if len(c.Members) == 0 {
		stop(nodeOf(c), c.Token)
	}
	for i := range c.Members {
		stop(gang.At(&c.Members[i]), c.Members[i].Token)
	}
}

// disown stops a subjob that a node reports and for which no claim stands. A claim is durable before its lease exists, so this one was
// given up while the node was silent. A report that arrives after the subjob's result was taken is ignored.
func (h *Ledger) disown(in *protocol.Message, out *protocol.Out) {
	if in.From.Role != protocol.Node {
		return
	}
	if j := h.Job(in.Job); j != nil && slices.ContainsFunc(j.work().past, func(p protocol.Past) bool {
		return p.RealEnd != 0 && (p.Token == in.Token || protocol.MemberOf(p.Members, in.Token) >= 0)
	}) {
		return
	}
	halt := &protocol.Halt{Text: "its home has given it up", Now: true}
	h.Send(out, protocol.Message{Kind: protocol.Stop, To: in.From, Token: in.Token, Job: in.Job, Body: halt})
}
