package home

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The plain ledger looks at every job and every claim after every input, as the definition says, and adds up what a queue has pledged
// from its asks. It is the oracle of what looks only at changes and alarms, as the plain floor is (market.Floor.Plainly).

// plainly is what the plain ledger remembers from step to step.
type plainly struct {
	// rested is the pause of a job that was over last.
	rested map[*Job]quantity.Instant
	closed map[*Job]plainClosed
}

// plainClosed is how often the gate was told of a verdict, and when it is told again.
type plainClosed struct {
	at    quantity.Instant
	tries int
}

// Plainly has the ledger look at everything from now on.
func (h *Ledger) Plainly() {
	h.plain = &plainly{rested: map[*Job]quantity.Instant{}, closed: map[*Job]plainClosed{}}
}

// Live are the jobs without a verdict, by id.
func (h *Ledger) Live() []*Job { return h.live.sorted() }

// Busy are the jobs with claims, by id.
func (h *Ledger) Busy() []*Job { return h.busy.sorted() }

// Asks are those that are not answered, by id.
func (h *Ledger) Asks() []*Ask { return h.asks }

func (c crowd) sorted() []*Job {
	return slices.SortedFunc(slices.Values(c), func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
}

// overduePlainly is Overdue by definition.
func (h *Ledger) overduePlainly(now quantity.Instant, out *protocol.Out) quantity.Instant {
	wake := quantity.Never
	for _, j := range h.Live() {
		if j.deadline() > now {
			wake = min(wake, j.deadline())
		} else if j.fate().dropping.State == job.Waiting {
			h.end(now, j, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	for _, j := range h.all() {
		if len(j.work().claims) == 0 && h.Closes(j) > now {
			wake = min(wake, h.Closes(j))
			continue
		}
		h.repeat(now, j, out)
		for i := range j.work().leases {
			l := &j.work().leases[i]
			wake = min(wake, h.givenUp(j, &j.work().claims[j.claim(l.token)], l))
			if !l.settled(j) {
				wake = min(wake, l.sent.Add(h.cfg.Retry))
			}
		}
	}
	for _, j := range h.all() {
		wake = min(wake, h.closePlainly(now, j, out))
	}
	for _, j := range h.all() {
		if len(j.work().unpublished) == 0 {
			continue
		}
		if h.publishAgain(j.work()) <= now {
			h.askPublications(now, j, out)
		}
		wake = min(wake, h.publishAgain(j.work()))
	}
	wake = min(wake, h.restPlainly(now))
	for _, j := range h.all() {
		if slices.ContainsFunc(j.met().backoff.avoided, func(a avoided) bool { return a.until <= now }) {
			h.forgive(now, j)
		}
	}
	return wake
}

// closePlainly tells the gate of a job's verdict until it has it, and returns when it is told again.
func (h *Ledger) closePlainly(now quantity.Instant, j *Job, out *protocol.Out) quantity.Instant {
	if !j.fate().verdict.State.Final() || j.fate().acked {
		delete(h.plain.closed, j)
		return quantity.Never
	}
	c := h.plain.closed[j]
	if c.at <= now {
		c = plainClosed{now.Add(h.cfg.Retry << min(c.tries, outbox.Doublings)), c.tries + 1}
		h.plain.closed[j] = c
		h.Send(out, protocol.Message{Kind: protocol.Closed, To: h.cfg.Gates.Of(j.ID), Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Body: &protocol.Closing{Verdict: j.fate().verdict, At: j.fate().ended}})
	}
	return c.at
}

// restPlainly has the jobs whose pause is over answer again, and returns when the next one's is. Where jobs bid, an agent that won
// nothing is called again too, and that goes by the alarm.
func (h *Ledger) restPlainly(now quantity.Instant) quantity.Instant {
	if h.cfg.Trust != nil {
		for _, j := range h.due(&h.resting, now) {
			h.changed(j)
		}
		return h.resting.Next()
	}
	wake := quantity.Never
	for _, j := range h.all() {
		switch {
		case j.met().notBefore == h.plain.rested[j]:
		case j.met().notBefore <= now:
			h.plain.rested[j] = j.met().notBefore
			h.changed(j)
		default:
			wake = min(wake, j.met().notBefore)
		}
	}
	return wake
}

// continuePlainly is Continue by definition.
func (h *Ledger) continuePlainly(now quantity.Instant, try func(j *Job, c *protocol.Claim, l *Lease)) quantity.Instant {
	wake := quantity.Never
	for _, j := range h.Busy() {
		for i := range j.work().leases {
			l := &j.work().leases[i]
			c := &j.work().claims[j.claim(l.token)]
			if at := j.bidsAt(c, l); at > now {
				wake = min(wake, at)
				continue
			}
			l.tried = c.End
			try(j, c, l)
			if l.ask != 0 {
				wake = min(wake, now.Add(h.cfg.Retry))
			}
		}
	}
	return wake
}

// nextPlainly is Next by definition, but for the leases, which overduePlainly has looked at.
func (h *Ledger) nextPlainly(now quantity.Instant) quantity.Instant {
	wake := quantity.Never
	for _, j := range h.Live() {
		if j.met().notBefore > now {
			wake = min(wake, j.met().notBefore)
		}
		for _, a := range j.met().backoff.avoided {
			wake = min(wake, a.until)
		}
	}
	for _, a := range h.asks {
		wake = min(wake, a.expires)
	}
	return wake
}

// pledgedPlainly adds up what a queue's asks will take.
func (h *Ledger) pledgedPlainly(q *Queue) (sum int64) {
	for _, a := range h.asks {
		if a.Bid != nil && a.Job.q == q {
			sum += a.Bid.Price
		}
	}
	return sum
}
