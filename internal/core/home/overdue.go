package home

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Overdue repeats what nobody has answered, gives up claims of silent nodes, ends jobs whose time is over, and returns
// when to look again. Of each of these it looks at the jobs whose time has come, by id.
func (h *Ledger) Overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	h.hearFirst(now)
	if h.plain != nil {
		return h.overduePlainly(now, out)
	}
	for _, j := range h.due(&h.deadlines, now) {
		if j.fate().dropping.State == job.Waiting {
			h.end(now, j, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	wake := h.deadlines.Next()
	h.rearm()
	for _, j := range h.due(&h.leases, now) {
		h.repeat(now, j, out)
		h.stir(j)
	}
	h.rearm()
	wake = min(wake, h.leases.Next())
	h.sayClosed(now, out)
	for _, j := range h.firstDue(&h.publishing, now, mostPublishing) {
		h.askPublications(now, j, out)
	}
	for _, j := range h.due(&h.resting, now) {
		h.changed(j)
	}
	for _, j := range h.due(&h.avoiding, now) {
		h.forgive(now, j)
	}
	return min(wake, h.closing.Wake(), h.leaving.Wake(), h.publishing.Next(), h.resting.Next(), h.avoiding.Next())
}

// repeat sends again what no node has answered about a job's claims, and gives up those whose node is silent.
func (h *Ledger) repeat(now quantity.Instant, s *Job, out *protocol.Out) {
	resting, gaveUp := s.rests(), false
	for j := 0; j < len(s.work().leases); j++ {
		c, l := s.work().claims[s.claim(s.work().leases[j].token)], &s.work().leases[j]
		if h.givenUp(s, &c, l) <= now {
			h.giveUp(now, s, &c, l, out)
			gaveUp = true
			j--
			continue
		}
		if l.settled(s) || l.sent.Add(h.cfg.Retry) > now {
			continue
		}
		if len(c.Members) > 0 {
			h.remindGang(now, s, l, &c, out)
			continue
		}
		if !l.known && l.sent != 0 { // until its node says something, nothing more of the job is asked of it
			h.BackOff(now, s, all(c.Slice, c.Also), l.won, Silent)
		}
		l.sent = now
		if l.withdrawn {
			h.sendWithdrawal(s, &c, l, now, out)
		}
		if l.ask != 0 {
			h.sendExtend(s, &c, l, out)
		}
		if !l.known || s.fate().dropping.State != job.Waiting {
			h.redeem(s, &c, out)
		}
		if s.fate().dropping.State != job.Waiting {
			halt := &protocol.Halt{Text: s.fate().dropping.Reason, Now: l.hurried(now, s)}
			h.Send(out, protocol.Message{Kind: protocol.Stop, To: nodeOf(&c), Token: c.Token, Job: s.ID, Body: halt})
		}
	}
	if gaveUp || len(s.work().claims) == 0 && !resting {
		h.settled(now, s, out)
	}
}

// giveUp releases a claim that its node has not settled in time, and counts it. Silence may have any cause, so it counts as ended from
// outside. If the node said throughout that processes remain, or that output is still being stored, it counts as the job's failure, as it
// would had the subjob ended; but not output where the node offers nothing of the slice meanwhile, as when its store is unreachable. For a
// cancelled job nothing is counted.
func (h *Ledger) giveUp(now quantity.Instant, j *Job, c *protocol.Claim, l *Lease, out *protocol.Out) {
	why, said, won := "its node reported nothing by the lease's end", Silent, l.won
	end := j.fate().bound(max(c.End, h.since), j.Spec.Launch.Grace)
	switch {
	case l.remains != 0:
		why = "processes of it outlived the lease"
		said = why
	case now >= j.OverBy():
		why = l.abandoned()
	case l.storing >= end.Add(mostStoring):
		why = fmt.Sprintf("what it left was still being stored %v after its lease's end", mostStoring)
	case now < c.End:
		waited := now.Sub(j.fate().stopped).Round(time.Second)
		why = fmt.Sprintf("it was told to end, and its node had not said %v later that it is gone", waited)
	}
	own := l.remains >= end.Add(mostRemaining) || l.storing >= end.Add(mostStoring) && !h.barred(c)
	h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, At: now, Text: why})
	if j.fate().dropped != 0 || now < c.End {
		h.dismiss(j, c, why, out)
	}
	if j.fate().dropped != 0 {
		return
	}
	learned := *j.Learned()
	if count := waveOf(now, c, &learned); own {
		count.fail(why)
	} else {
		count.kill(why)
	}
	h.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Learned: &learned})
	h.BackOff(now, j, all(c.Slice, c.Also), won, said)
}

// barred says whether a slice of a claim is not offered by its node at the moment.
func (h *Ledger) barred(c *protocol.Claim) bool {
	return slices.ContainsFunc(all(c.Slice, c.Also), h.supply.Barred)
}

// settled says that nothing about the lease waits for an answer.
func (l *Lease) settled(j *Job) bool {
	return l.known && l.ask == 0 && !l.withdrawn && j.fate().dropping.State == job.Waiting && (l.course == nil || l.course.Broken() == "")
}

// mostStoring is how long a home waits beyond a lease's end for what its subjob has left to be stored, as long as its node says that it is (ADR 0049). A
// store that is away for longer costs a piece of work, and no more than that.
const mostStoring = 10 * time.Minute

// mostStopping is how long a home waits beyond its grace for a subjob of a job that is to end and was told to stop, if its lease is not
// over before. The owner of a job that is cancelled waits for less (cancel.go).
const mostStopping = 10 * time.Minute

const (
	// longQuiet is how long a home may have had no step before it takes it that it was paused. It is well under the skew, so a claim whose end
	// fell into a pause that is too short to be noticed has the rest of its skew.
	longQuiet = 3 * time.Second
	// mostHearing is how long after a pause no claim is given up. It is under longQuiet, else a home that has only this to wait for would wait
	// again.
	mostHearing = 2 * time.Second
)

// hearFirst lets nodes speak first after a pause of the daemon (SIGSTOP, a machine that was frozen): what ended in time meanwhile is told
// in a moment, and the clock alone says that its node is silent. A home that was quiet because there was nothing to do waits as long, which
// harms nobody.
func (h *Ledger) hearFirst(now quantity.Instant) {
	if now > h.stepped.Add(longQuiet) {
		h.hearing = now.Add(mostHearing)
	}
	h.stepped = now
}

// bound is when a subjob is over by: at the end of its lease, or earlier where its job is to end. Its node was told to stop it then; a
// while beyond its grace is for a node that does not hear that at once.
func (f *fate) bound(end quantity.Instant, grace time.Duration) quantity.Instant {
	if f.dropping.State != job.Waiting && !planted.In(planted.WaitEnding) {
		end = min(end, f.stopped.Add(grace+mostStopping))
	}
	return end
}

// givenUp is when a claim is given up if its node stays silent; of a cancelled job whatever the node says.
func (h *Ledger) givenUp(j *Job, c *protocol.Claim, l *Lease) quantity.Instant {
	end := j.fate().bound(max(c.End, h.since), j.Spec.Launch.Grace)
	at := max(end, min(l.storing, end.Add(mostStoring)), min(l.remains, end.Add(mostRemaining))).Add(h.cfg.Skew)
	return max(h.hearing, min(at, j.OverBy()))
}

// rearm sets the alarms of jobs whose leases have changed.
func (h *Ledger) rearm() {
	h.stirred.Drain(h.armLeases)
}

// armLeases sets the alarms of a job by its leases.
func (h *Ledger) armLeases(j *Job) {
	again, bids, slots := h.Closes(j), quantity.Never, &j.makeWork().slots
	for i := range j.work().leases {
		l := &j.work().leases[i]
		c := &j.work().claims[j.claim(l.token)]
		again = min(again, h.givenUp(j, c, l))
		if !l.settled(j) {
			again = min(again, l.sent.Add(h.cfg.Retry))
		}
		bids = min(bids, j.bidsAt(c, l))
	}
	h.leases.Set(&slots.leases, j, again)
	h.continuing.Set(&slots.continuing, j, bids)
}

// due takes the jobs out of a list of alarms whose time has come, by id. They are good until the next call.
func (h *Ledger) due(of *alarm.Heap[*Job], now quantity.Instant) []*Job {
	return h.firstDue(of, now, math.MaxInt)
}

// firstDue is no more than so many of them, those whose time came first. The others are due in the next step.
func (h *Ledger) firstDue(of *alarm.Heap[*Job], now quantity.Instant, most int) []*Job {
	h.looking = h.looking[:0]
	for len(h.looking) < most {
		j, ok := of.Due(now)
		if !ok {
			break
		}
		h.looking = append(h.looking, j)
	}
	if len(h.looking) > 1 {
		slices.SortFunc(h.looking, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	}
	return h.looking
}

// Next is when what this ledger asked of nodes, or has wait, is to be looked at again.
func (h *Ledger) Next(now quantity.Instant) quantity.Instant {
	if h.plain != nil {
		return h.nextPlainly(now)
	}
	wake := min(h.resting.Next(), h.avoiding.Next(), h.leases.Next())
	if len(h.asks) > 0 {
		wake = min(wake, h.asks[0].expires)
	}
	return wake
}

// all are the slices of an ask or a claim.
func all(first job.SliceID, also []job.SliceID) []job.SliceID {
	return append(append(make([]job.SliceID, 0, 1+len(also)), first), also...)
}
