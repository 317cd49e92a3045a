package record

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Fact decides f: it is applied at once and made durable before any effect of the step leaves.
func (b *Book) Fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = b.cfg.Self
	out.Facts = append(out.Facts, f)
	b.Apply(&f)
}

// Apply folds one fact into the durable state, and neither keeps nor changes it. It is the only place where that state changes.
func (b *Book) Apply(f *protocol.Fact) {
	switch f.Kind {
	case protocol.HomeTaken:
		spec := f.Body.(*protocol.Taking).Spec
		b.adopt(&protocol.Record{
			Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: spec, Queue: spec.Queue, Submitted: f.At,
		})
	case protocol.HomeKept:
		kept := f.Body.(*protocol.Keeping)
		if r := kept.Record; kept.Recalled {
			b.inQueue(r.Queue, func(q *Queue) { q.Archive(-r.Attained) })
		}
		b.adopt(kept.Record)
	case protocol.HomeDropped:
		if j := b.Job(f.Job); j != nil {
			b.remove(j)
		}
		if d := f.Body.(*protocol.HomeDrop); d.Attained > 0 {
			b.inQueue(d.Queue, func(q *Queue) { q.Archive(-d.Attained) })
		}
		b.dropped.Add(f.Job, f.Generation)
	case protocol.HomeArchived:
		if j := b.Job(f.Job); j != nil {
			b.remove(j)
			b.inQueue(j.q.Name, func(q *Queue) { q.Archive(j.History().Attained()) })
		}
	case protocol.QueueKnown:
		settings := f.Body.(*protocol.Queue)
		b.inQueue(settings.Name, func(q *Queue) { b.Purses.Set(&q.Queue, *settings) })
		b.watch.QueuesChanged()
	case protocol.QueueCalibrated:
		s := f.Body.(*protocol.Calibration)
		b.inQueue(s.Queue, func(q *Queue) { q.Calibrate(s) })
	case protocol.Taught:
		l := f.Body.(*protocol.Lesson)
		b.inQueue(l.Queue, func(q *Queue) { q.templates.Add(l) })
	default:
		j := b.Job(f.Job)
		if j == nil {
			invariant.Check(false, "home of %s: fact %d is about job %q, which it does not have", b.cfg.Self.ID, f.Kind, f.Job)
		}
		b.records.Change(j)
		b.applyJob(j, f)
		b.lists.update(j)
		sum := j.hash()
		b.sum += sum - j.sum
		j.sum = sum
	}
}

// inQueue changes what is durable of a queue.
func (b *Book) inQueue(name string, change func(q *Queue)) {
	q := b.Queue(name)
	b.sum -= q.Sum() + q.templates.Sum()
	change(q)
	b.sum += q.Sum() + q.templates.Sum()
}

// remove takes a job out of memory. What it had attained counts on for its queue until the ledger comes up again.
func (b *Book) remove(j *Job) {
	b.records.Remove(j)
	b.sum -= j.sum
	b.retire(j)
	b.lists.strike(j)
	b.Closed.withdraw(j)
	if j.work != nil {
		b.rest(j)
		b.Agenda.Set(Publishing, j, quantity.Never)
	}
	delete(b.jobs, j.ID)
	b.sought, b.found = j.ID, nil
}

func (b *Book) adopt(r *protocol.Record) {
	j := b.make(b.Queue(r.Queue), r)
	j.Spec, j.specSum = b.specs.Share(r.Spec)
	for i := range j.Claims() {
		b.hold(j, &j.Claims()[i])
	}
	j.q.Attain(r.Attained)
	b.jobs[j.ID] = j
	b.sought, b.found = j.ID, j
	switch {
	case r.Verdict.State.Final():
		b.Closed.announce(j)
	case !j.Complete():
		b.enliven(j)
	}
	b.ArmOutput(j)
	if len(j.Claims()) > 0 {
		b.busy.Add(j, busySlot)
	}
	j.sum = j.hash()
	b.sum += j.sum
	b.records.Add(j)
	b.lists.update(j)
	b.Changed(j)
}

func (b *Book) applyJob(j *Job, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		b.claim(j, f)
	case protocol.ClaimExtended:
		c, to := b.standing(j, f.Token), f.Body.(*protocol.Extent)
		if !j.work.progress.Move(c.Range, to.Range) {
			invariant.Check(false, "job %s: the extension %v of %v overlaps committed work", j.ID, to.Range, f.Token)
		}
		j.work.claims.Move(c, to.Range, to.End, to.Peak)
		b.watch.Resold(j, c)
		b.Touch(j)
	case protocol.Released:
		b.settle(j, f, job.Range{})
	case protocol.Committed:
		c, end := *b.standing(j, f.Token), f.Body.(*protocol.ClaimEnd)
		if !j.work.progress.Committable(end.Range, c.Range) {
			invariant.Check(false, "job %s: committing %v of claim %v a second time or beyond it", j.ID, end.Range, c.Range)
		}
		b.settle(j, f, end.Range)
		if end.Result != nil {
			j.work.scores = j.work.scores.Add(end.Result.Tried)
		}
		j.work.progress.Commit(end.Range, end.Skipped)
		if end.Result != nil && end.Result.Ended && j.Spec.Open() {
			j.work.progress.End(end.Range.To)
		}
		if !end.Skipped { // skipped units have nothing to publish
			j.work.output.Await(&c, end.Range)
			b.ArmOutput(j)
		}
		if j.Spec.Resumes() && end.Result.Checkpoint {
			j.work.progress.Checkpoint(f.Token)
		}
		if j.Complete() {
			b.retire(j) // it has no use for a window any more
		}
	case protocol.OutputPublished:
		j.makeWork().output.Published(f.Token)
		b.ArmOutput(j)
		b.Stir(j)
		b.Closed.mayLeave(j)
	case protocol.Calibrated:
		j.lessons = j.lessons.Learned(f.Body.(*protocol.Learned))
		b.watch.Moved(j)
		b.Touch(j)
	case protocol.HomePaused:
		j.Paused = f.Body.(*protocol.JobPause).Paused
		b.watch.Paused(j)
		b.Changed(j)
	case protocol.Ended:
		j.MakeEnding().Close(f.Body.(*protocol.Final).Verdict, f.At)
		b.retire(j)
		b.Closed.announce(j)
	case protocol.HomeReopened:
		b.reopen(j, f)
	case protocol.HomeLeaving:
		b.countLeaving(j, -1)
		j.MakeEnding().Leave(f.Body.(*protocol.Reason).Text)
		b.countLeaving(j, 1)
		b.retire(j)
		b.Touch(j) // a continuation that was to be asked for is not
	}
}

// claim adds a new claim to a job.
func (b *Book) claim(j *Job, f *protocol.Fact) {
	w, sale := j.makeWork(), f.Body.(*protocol.Sale)
	if !w.progress.Claim(sale.Range) {
		invariant.Check(false, "job %s: %v is sold a second time", j.ID, sale.Range)
	}
	c := w.claims.Add(&protocol.Claim{
		Token: f.Token, Generation: j.Generation, Sale: *sale, Asked: f.At,
	})
	if c == nil {
		invariant.Check(false, "job %s: token %v is claimed twice", j.ID, f.Token)
	}
	if c.Bid != nil {
		b.credit(j.q, -c.Bid.Price)
	}
	w.history.Serve(sale.Start)
	b.hold(j, c)
	b.busy.Add(j, busySlot)
	b.Touch(j)
}

// credit adds to what a queue has to pay with.
func (b *Book) credit(q *Queue, more int64) {
	if more != 0 {
		b.inQueue(q.Name, func(q *Queue) { q.Credit(more) })
	}
}

// hold adds a claim to a job.
func (b *Book) hold(j *Job, c *protocol.Claim) {
	j.q.Hold(1 + len(c.Also))
	b.watch.Sold(j, c)
}

// settle ends a claim: what it held is free again but for committed, and it becomes part of the past.
func (b *Book) settle(j *Job, f *protocol.Fact, committed job.Range) {
	b.standing(j, f.Token)
	w, q := j.work, j.q
	c, l := w.claims.Remove(f.Token)
	w.progress.Release(c.Range)
	if l.Running() != 0 {
		q.Stop(l.Running(), policy.MiB(c.Demand))
	}
	if len(w.claims.All()) == 0 {
		b.rest(j)
	}
	q.Hold(-1 - len(c.Also))
	b.Freed(q)

	end := f.Body.(*protocol.ClaimEnd)
	c.Plan.Bars = nil // of no use any more
	was := protocol.Past{Claim: c, Committed: committed, Skipped: end.Skipped, Outcome: job.Lost, Detail: end.Text}
	p, attained := w.history.Settle(was, end.Result, f.At)
	q.Attain(attained)
	b.watch.Freed(j, &p.Claim, f.At)
	if p.RealStart == 0 && c.Bid != nil {
		w.history.Unserve(c.Bid.Since) // it was not served after all
		b.credit(q, c.Bid.Price)
	} else {
		w.history.Serve(f.At)
	}
	b.Changed(j)
}

// standing is the claim under a token, which must be unsettled.
func (b *Book) standing(j *Job, t job.Token) *protocol.Claim {
	c := j.ClaimSet().Claim(t)
	if c == nil {
		invariant.Check(false, "job %s: token %v has no claim", j.ID, t)
	}
	return c
}

// reopen makes a job that is over wait again. Its wait begins anew: it is not put before those that came while it was over. The cause of
// its end counts no more.
func (b *Book) reopen(j *Job, f *protocol.Fact) {
	b.lists.strike(j) // it stands elsewhere in lists from now on
	j.Generation, j.Submitted = f.Generation, f.At
	stopped := j.Spec.Launch.Adapter.Trials.Stop
	j.Spec, j.specSum = b.specs.Share(f.Body.(*protocol.Sequel).Spec)
	j.Paused = false
	b.Closed.withdraw(j)
	j.end = nil
	if w := j.work; w != nil {
		w.history.Reopen()
		w.progress.Forgive()
		if j.Spec.Launch.Adapter.Trials.Stop != stopped {
			w.scores = nil // of other rungs
		}
	}
	j.lessons.Forgive()
	if j.trouble != nil {
		j.trouble.Reopen()
		b.Agenda.Set(Resting, j, quantity.Never)
	}
	b.watch.Reopened(j)
	if !j.Complete() {
		b.enliven(j)
	}
	b.Changed(j)
}
