package zone

import (
	"cmp"
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// overdue repeats what nobody has answered, gives up claims of silent nodes, ends jobs whose time is over, and returns
// when to look again. Of each of these it looks at the jobs whose time has come, by id.
func (z *Zone) overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	for _, j := range z.due(&z.deadlines, now) {
		if j.fate().dropping.State == job.Waiting {
			z.end(now, j, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	wake := z.deadlines.Next()
	z.rearm()
	for _, j := range z.due(&z.leases, now) {
		z.repeat(now, j, out)
		z.stir(j)
	}
	z.rearm()
	wake = min(wake, z.leases.Next())
	z.sayClosed(now, out)
	for _, j := range z.firstDue(&z.publishing, now, mostPublishing) {
		z.askPublications(now, j, out)
	}
	for _, j := range z.due(&z.resting, now) {
		z.changed(j)
	}
	for _, j := range z.due(&z.avoiding, now) {
		z.forgive(now, j)
	}
	return min(wake, z.closing.Wake(), z.leaving.Wake(), z.publishing.Next(), z.resting.Next(), z.avoiding.Next())
}

// repeat sends again what no node has answered about a job's claims, and gives up those whose node is silent.
func (z *Zone) repeat(now quantity.Instant, s *Job, out *protocol.Out) {
	for j := 0; j < len(s.work().leases); j++ {
		c, l := s.work().claims[s.claim(s.work().leases[j].token)], &s.work().leases[j]
		if z.givenUp(&c) <= now {
			const why = "its node reported nothing by the lease's end"
			won := l.won
			z.fact(out, protocol.Fact{Kind: protocol.Released, Job: s.ID, Token: c.Token, At: now, Text: why})
			z.backOff(now, s, z.sitesOf(c.Slice, c.Also), won, silent)
			j--
			continue
		}
		if l.settled(s) || l.sent.Add(z.cfg.Retry) > now {
			continue
		}
		if !l.known && l.sent != 0 { // until its node says something, nothing more of the job is asked of it
			z.backOff(now, s, z.sitesOf(c.Slice, c.Also), l.won, silent)
		}
		l.sent = now
		if l.withdrawn {
			z.sendWithdrawal(s, &c, l, now, out)
		}
		if l.ask != 0 {
			z.sendExtend(s, &c, l, out)
		}
		if !l.known || s.fate().dropping.State != job.Waiting {
			z.redeem(s, &c, out)
		}
		if s.fate().dropping.State != job.Waiting {
			z.send(out, protocol.Message{Kind: protocol.Stop, To: nodeOf(&c), Token: c.Token, Job: s.ID, Text: s.fate().dropping.Reason})
		}
	}
	if len(s.work().claims) == 0 {
		z.settled(now, s, out)
	}
}

// settled says that nothing about the lease waits for an answer.
func (l *lease) settled(j *Job) bool {
	return l.known && l.ask == 0 && !l.withdrawn && j.fate().dropping.State == job.Waiting
}

// givenUp is when a claim is given up if its node stays silent.
func (z *Zone) givenUp(c *protocol.Claim) quantity.Instant {
	return max(c.End, z.since).Add(z.cfg.Skew)
}

// rearm sets the alarms of jobs whose leases have changed.
func (z *Zone) rearm() {
	z.stirred.Drain(z.armLeases)
}

// armLeases sets the alarms of a job by its leases.
func (z *Zone) armLeases(j *Job) {
	again, bids, slots := quantity.Never, quantity.Never, &j.makeWork().slots
	for i := range j.work().leases {
		l := &j.work().leases[i]
		c := &j.work().claims[j.claim(l.token)]
		again = min(again, z.givenUp(c))
		if !l.settled(j) {
			again = min(again, l.sent.Add(z.cfg.Retry))
		}
		bids = min(bids, j.bidsAt(c, l))
	}
	z.leases.Set(&slots.leases, j, again)
	z.continuing.Set(&slots.continuing, j, bids)
}

// due takes the jobs out of a list of alarms whose time has come, by id. They are good until the next call.
func (z *Zone) due(of *alarm.Heap[*Job], now quantity.Instant) []*Job {
	return z.firstDue(of, now, math.MaxInt)
}

// firstDue is no more than so many of them, those whose time came first. The others are due in the next step.
func (z *Zone) firstDue(of *alarm.Heap[*Job], now quantity.Instant, most int) []*Job {
	z.looking = z.looking[:0]
	for len(z.looking) < most {
		j, ok := of.Due(now)
		if !ok {
			break
		}
		z.looking = append(z.looking, j)
	}
	if len(z.looking) > 1 {
		slices.SortFunc(z.looking, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	}
	return z.looking
}
