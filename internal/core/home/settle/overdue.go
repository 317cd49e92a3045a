package settle

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/ending"
	"sluice.dev/sluice/internal/core/home/learn"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Recover is called once, after the last fact: a verdict that waited for its job's subjobs, or its output, was forgotten.
func (d *Settler) Recover(now quantity.Instant, out *protocol.Out) {
	d.pauses.since = now
	for _, j := range d.book.Busy() {
		d.book.Stir(j)
	}
	doomed := []*record.Job(nil)
	for _, j := range d.book.Live() {
		d.watch.Came(now, j)
		if j.Lessons() != nil && d.Hopeless(j) != "" {
			doomed = append(doomed, j)
		}
	}
	for _, j := range record.ByName(doomed) {
		d.Settled(now, j, out)
	}
}

// Overdue repeats what nobody has answered, gives up claims of silent nodes, ends jobs whose time is over, and returns
// when to look again. Of each of these it looks at the jobs whose time has come, by id.
func (d *Settler) Overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	d.pauses.step(now)
	a := &d.book.Agenda
	for _, j := range a.Due(record.Deadline, now, math.MaxInt) {
		if !j.Ending().Stopping() {
			d.End(now, j, job.Verdict{State: job.Expired, Reason: "its deadline passed before it finished"}, out)
		}
	}
	wake := a.Next(record.Deadline)
	d.rearm()
	for _, j := range a.Due(record.Leases, now, math.MaxInt) {
		d.repeat(now, j, out)
		d.book.Stir(j)
	}
	d.rearm()
	wake = min(wake, a.Next(record.Leases))
	d.sayClosed(now, out)
	for _, j := range a.Due(record.Publishing, now, mostPublishing) {
		d.askPublications(now, j, out)
	}
	for _, j := range a.Due(record.Resting, now, math.MaxInt) {
		d.book.Changed(j)
	}
	for _, j := range a.Due(record.Avoiding, now, math.MaxInt) {
		d.claims.Delays.Expire(now, j)
	}
	return min(wake, d.book.Closed.Wake(), a.Next(record.Publishing), a.Next(record.Resting), a.Next(record.Avoiding))
}

// Next is when what this ledger asked of nodes, or has wait, is to be looked at again.
func (d *Settler) Next() quantity.Instant {
	a := &d.book.Agenda
	return min(a.Next(record.Resting), a.Next(record.Avoiding), a.Next(record.Leases), d.claims.Expires())
}

// repeat sends again what no node has answered about a job's claims, and gives up those whose node is silent.
func (d *Settler) repeat(now quantity.Instant, j *record.Job, out *protocol.Out) {
	resting, gaveUp := j.AtRest(), false
	for i := 0; i < len(j.ClaimSet().States()); i++ {
		st := &j.ClaimSet().States()[i]
		c := *j.ClaimSet().Claim(st.Token())
		if d.givenUp(j, &c, st) <= now {
			d.giveUp(now, j, &c, st, out)
			gaveUp = true
			i--
			continue
		}
		if settled(j, st) || st.Sent().Add(d.cfg.Retry) > now {
			continue
		}
		d.claims.Repeat(now, j, &c, st, out)
	}
	if gaveUp || len(j.Claims()) == 0 && !resting {
		d.Settled(now, j, out)
	}
}

// settled says that nothing about a claim waits for an answer.
func settled(j *record.Job, st *standing.ClaimState) bool {
	return st.Settled() && !j.Ending().Stopping()
}

// givenUp is when a claim is given up if its node stays silent; of a cancelled job whatever the node says.
func (d *Settler) givenUp(j *record.Job, c *protocol.Claim, st *standing.ClaimState) quantity.Instant {
	return max(d.pauses.hearing, min(st.GivenUp(d.bound(j, c), d.cfg.Skew), j.Ending().OverBy()))
}

// bound is when a claim's subjob is over by.
func (d *Settler) bound(j *record.Job, c *protocol.Claim) quantity.Instant {
	return j.Ending().Bound(max(c.End, d.pauses.since), j.Spec.Launch.Grace)
}

// giveUp releases a claim that its node has not settled in time, and counts it. Silence may have any cause, so it counts as ended from
// outside. If the node said throughout that processes remain, or that output is still being stored, it counts as the job's failure, as it
// would had the subjob ended; but not output where the node offers nothing of the slice meanwhile, as when its store is unreachable. For a
// cancelled job nothing is counted.
func (d *Settler) giveUp(now quantity.Instant, j *record.Job, c *protocol.Claim, st *standing.ClaimState, out *protocol.Out) {
	why, said, won := "its node reported nothing by the lease's end", backoff.Silent, st.WonBy()
	end, e := d.bound(j, c), j.Ending()
	switch {
	case st.Remains() != 0:
		why = "processes of it outlived the lease"
		said = why
	case now >= e.OverBy():
		why = abandoned(st)
	case st.StoredTooLong(end):
		why = fmt.Sprintf("what it left was still being stored %v after its lease's end", standing.MostStoring)
	case now < c.End:
		why = fmt.Sprintf("it was told to end, and its node had not said %v later that it is gone", e.Stopped(now).Round(time.Second))
	}
	own := st.RemainedTooLong(end) || st.StoredTooLong(end) && !d.barred(c)
	d.book.Fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, At: now, Body: &protocol.ClaimEnd{Text: why}})
	if e.Cancelled() || now < c.End {
		d.dismiss(j, c, why, out)
	}
	if e.Cancelled() {
		return
	}
	learned := *j.Learned()
	if count := learn.WaveOf(now, c, &learned); own {
		count.Fail(why)
	} else {
		count.Kill(why)
	}
	d.book.Fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Body: &learned})
	d.claims.BackOff(now, j, standing.Slices(c.Slice, c.Also), won, said)
}

// abandoned is the reason, for people, for which a claim of a cancelled job is given up.
func abandoned(st *standing.ClaimState) string {
	if st.Stores() {
		return fmt.Sprintf("it was cancelled, and what it had left was not stored %v later", ending.MostCancelling)
	}
	return fmt.Sprintf("it was cancelled, and its node had not said %v later that it is gone", ending.MostCancelling)
}

// barred says whether a slice of a claim is not offered by its node at the moment.
func (d *Settler) barred(c *protocol.Claim) bool {
	return slices.ContainsFunc(standing.Slices(c.Slice, c.Also), d.supply.Barred)
}

// dismiss tells the nodes of a claim that is given up to end its subjobs at once. A node that misses it is told again when it reports.
func (d *Settler) dismiss(j *record.Job, c *protocol.Claim, why string, out *protocol.Out) {
	stop := func(to protocol.Address, t job.Token) {
		d.claims.Send(out, protocol.Message{Kind: protocol.Stop, To: to, Token: t, Job: j.ID, Body: &protocol.Halt{Text: why, Now: true}})
	}
	if len(c.Members) == 0 {
		stop(protocol.Address{Role: protocol.Node, ID: string(c.Node)}, c.Token)
	}
	for i := range c.Members {
		stop(gang.At(&c.Members[i]), c.Members[i].Token)
	}
}

// Remains: a node reports that processes of a subjob remain, though its lease is over; it repeats that until they are gone, and the same
// work is not sold meanwhile. Of a gang any member's report counts for all. The job begins nothing until a while after the last report; one
// that is to end does not wait for them.
func (d *Settler) Remains(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j, st := d.claims.StateOf(in)
	if st == nil {
		return
	}
	if j.Ending().Stopping() {
		why := "its processes could not be ended at once"
		d.book.Fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: st.Token(), At: now, Body: &protocol.ClaimEnd{Text: why}})
		d.Settled(now, j, out)
		return
	}
	st.Remain(now)
	d.book.Stir(j)
	if j.Active() && j.Backoff().Rests() < now.Add(d.cfg.Skew) {
		d.claims.Delays.Rest(now, j, d.cfg.Skew)
	}
}

// rearm sets the alarms of jobs whose claims have changed.
func (d *Settler) rearm() { d.book.Stirred(d.Arm) }

// Arm sets the alarms of a job by its claims.
func (d *Settler) Arm(j *record.Job) {
	again, bids := d.alarms(j)
	d.book.Agenda.Set(record.Leases, j, again)
	d.book.Agenda.Set(record.Continuing, j, bids)
}

// alarms are when a job's claims are to be looked at again, and when one of its subjobs bids for the window behind its own.
func (d *Settler) alarms(j *record.Job) (again, bids quantity.Instant) {
	again, bids = d.Closes(j), quantity.Never
	for i := range j.ClaimSet().States() {
		st := &j.ClaimSet().States()[i]
		c := j.ClaimSet().Claim(st.Token())
		again = min(again, d.givenUp(j, c, st))
		if !settled(j, st) {
			again = min(again, st.Sent().Add(d.cfg.Retry))
		}
		bids = min(bids, bidsAt(j, c, st))
	}
	return again, bids
}

// bidsAt is when a running subjob bids for the window that follows its own. Never if it does not; an external job's agent plans its
// subjobs itself.
func bidsAt(j *record.Job, c *protocol.Claim, st *standing.ClaimState) quantity.Instant {
	if !j.Spec.Extends() && (!j.Spec.Continue || j.Spec.External) || j.Ending().Leaving() != "" || j.Ending().Stopping() {
		return quantity.Never
	}
	return st.BidsAt(c, j.Spec.Launch.Grace)
}

// Continue has try look at every running subjob that bids for the window behind its own by now, whose continuation it may then ask
// for (claims.Extend). It returns when to look again.
func (d *Settler) Continue(now quantity.Instant, try func(j *record.Job, c *protocol.Claim, st *standing.ClaimState)) quantity.Instant {
	wake := quantity.Never
	for _, j := range d.book.Agenda.Due(record.Continuing, now, math.MaxInt) {
		for i := range j.ClaimSet().States() {
			st := &j.ClaimSet().States()[i]
			c := j.ClaimSet().Claim(st.Token())
			if bidsAt(j, c, st) > now {
				continue
			}
			st.Bids(c)
			try(j, c, st)
			if st.Extension() != 0 {
				wake = min(wake, now.Add(d.cfg.Retry))
			}
		}
		d.book.Stir(j)
	}
	d.rearm()
	return min(wake, d.book.Agenda.Next(record.Continuing))
}
