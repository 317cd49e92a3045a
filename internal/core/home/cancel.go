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

// A job that its owner cancels is over within a minute of that, whatever its programs, their nodes and stores do. The minute counts from
// the gate's fact, so a home that starts again meanwhile goes on with it. What is heard of a claim that was given up changes nothing:
// its result is refused, and what runs under it is stopped.

const (
	// keptGrace is what a subjob of a cancelled job keeps of its grace. The owner wants it gone: a longer grace is for leases that end.
	keptGrace = 30 * time.Second
	// mostCancelling is when what has not ended of a cancelled job is given up. What is left of the minute is for words that are repeated,
	// and for nodes that are heard first after a pause of the daemon.
	mostCancelling = 50 * time.Second
)

// Cancel ends a job on its owner's word: at once if nothing of it runs, else when the last subjob is settled, and within a minute.
func (h *Ledger) Cancel(now quantity.Instant, in *protocol.Message, c *protocol.Cancellation, out *protocol.Out) {
	if j := h.Job(in.Job); j != nil && j.lives(in) && !j.rests() {
		h.cancel(now, c.At, j, c.Text, out)
	}
}

// cancel ends a job that was to end since an instant, 0 if that is not known.
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
		h.drop(j, v)
	}
}

// drop has a job end so once its claims are settled.
func (h *Ledger) drop(j *Job, v job.Verdict) {
	j.makeFate().dropping = v
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

// abandoned says why a claim of a cancelled job was given up.
func (l *Lease) abandoned() string {
	if l.Stores() {
		return fmt.Sprintf("it was cancelled, and what it had left was not stored %v later", mostCancelling)
	}
	return fmt.Sprintf("it was cancelled, and its node had not said %v later that it is gone", mostCancelling)
}

// hurried says whether a subjob of a cancelled job has had what it keeps of its grace. One that has ended has no use for it.
func (l *Lease) hurried(now quantity.Instant, j *Job) bool {
	since := j.fate().dropped
	return since != 0 && j.Spec.Launch.Grace > keptGrace && !l.Stores() && now >= since.Add(keptGrace)
}

// dismiss has the nodes of a claim that is given up end what they still have of it. They may not hear that: see disown.
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

// disown ends what a node says that it has under a token of which no claim stands. Claims come before leases, so it was given up while
// its node was not heard. A word that was overtaken by the result is about nothing.
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

// unconfirmed is the verdict of a cancelled job of which all is committed and something has not been published in time. It is published
// when its node is heard again.
func (j *Job) unconfirmed() job.Verdict {
	v := j.fate().dropping
	v.Reason = fmt.Sprintf("%s; all of it was done, but node %s did not say in time that the output of %d %ss is in its place: it comes when "+
		"the node is heard again", v.Reason, j.work().unpublished[0].Node, j.Unpublished(), j.Spec.UnitName())
	return v
}
