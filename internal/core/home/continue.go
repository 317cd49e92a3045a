package home

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Extends says whether a job that reaches its walltime goes on.
func (j *Job) Extends() bool {
	return j.Spec.Kind == job.Rigid && j.Spec.OnOverrun == job.OverrunExtends
}

// bidsAt is when a running subjob bids for the window that follows its own: late enough to judge the present queue, early
// enough for the program to see its new end. Never if it does not; an external job's agent plans its subjobs itself.
func (j *Job) bidsAt(c *protocol.Claim, l *Lease) quantity.Instant {
	if !j.Extends() && (!j.Spec.Continue || j.Spec.External) || l.running == 0 || l.ask != 0 || l.tried == c.End || c.End == quantity.Never || j.Leaving() != "" || j.fate().dropping.State != job.Waiting || len(c.Also) > 0 {
		return quantity.Never
	}
	return c.End.Add(-j.Spec.Launch.Grace - max(2*time.Second, c.Wall()/4))
}

// Extend claims the longer range first, then asks the node to move the lease's end: dying in between costs nothing but
// the chance.
func (h *Ledger) Extend(now quantity.Instant, j *Job, c *protocol.Claim, l *Lease, r job.Range, end quantity.Instant, peak trp.Peak, out *protocol.Out) {
	if c.Peak == (trp.Peak{}) { // it was sold without one, and a zero in a fact changes nothing: a refusal could not take it back
		peak = trp.Peak{}
	}
	l.before.rng, l.before.end, l.before.peak = c.Range, c.End, c.Peak
	h.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: c.Token, Range: r, End: end, Peak: peak})
	l.ask, l.sent = h.NewAsk(), now
	h.sendExtend(j, c, l, out)
}

// sendExtend is repeated until the node answers, and idempotent by what it asks for.
func (h *Ledger) sendExtend(j *Job, c *protocol.Claim, l *Lease, out *protocol.Out) {
	h.Send(out, protocol.Message{
		Kind: protocol.Extend, To: nodeOf(c), Body: &protocol.Extension{Ask: l.ask, Slice: c.Slice, Range: c.Range, End: c.End, Peak: c.Peak}, Token: c.Token, Job: j.ID,
	})
}

// Continue has try look at every running subjob that bids for the window behind its own by now, whose continuation it may then ask
// for (Extend). It returns when to look again.
func (h *Ledger) Continue(now quantity.Instant, try func(j *Job, c *protocol.Claim, l *Lease)) quantity.Instant {
	if h.plain != nil {
		return h.continuePlainly(now, try)
	}
	wake := quantity.Never
	for _, j := range h.due(&h.continuing, now) {
		for i := range j.work().leases {
			l := &j.work().leases[i]
			c := &j.work().claims[j.claim(l.token)]
			if j.bidsAt(c, l) > now {
				continue
			}
			l.tried = c.End
			try(j, c, l)
			if l.ask != 0 {
				wake = min(wake, now.Add(h.cfg.Retry))
			}
		}
		h.stir(j)
	}
	h.rearm()
	return min(wake, h.continuing.Next())
}

// Withdraw asks a claim's node to give it up unless it has begun, or is to be moved or ended; it says whether it does.
func (h *Ledger) Withdraw(now quantity.Instant, j *Job, t job.Token, out *protocol.Out) bool {
	l := j.Lease(t)
	if len(j.work().claims[j.claim(t)].Members) > 0 || l.running != 0 || l.ask != 0 || j.fate().dropping.State != job.Waiting {
		return false
	}
	l.withdrawn = true
	h.sendWithdrawal(j, &j.work().claims[j.claim(t)], l, now, out)
	h.armLeases(j)
	return true
}

// sendWithdrawal is repeated until the lease is over or has begun, and idempotent.
func (h *Ledger) sendWithdrawal(j *Job, c *protocol.Claim, l *Lease, now quantity.Instant, out *protocol.Out) {
	l.sent = now
	h.Send(out, protocol.Message{
		Kind: protocol.Stop, To: nodeOf(c), Token: c.Token, Job: j.ID, Body: &protocol.Halt{Unbegun: true, Text: "withdrawn before it began: something better is known"},
	})
}
