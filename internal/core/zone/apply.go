package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// fact decides f: it is applied at once and made durable before any effect of the step leaves.
func (z *Zone) fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = z.self
	if !planted.In(planted.ForgetCommit) || f.Kind != protocol.Committed {
		out.Facts = append(out.Facts, f)
	}
	z.Apply(f)
}

// Apply folds one fact into the durable state. It is the only place where that changes.
func (z *Zone) Apply(f protocol.Fact) {
	switch f.Kind {
	case protocol.HomeTaken:
		z.adopt(&protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: f.Spec, Queue: f.Spec.Queue, Submitted: f.At})
	case protocol.HomeKept:
		if f.Flag {
			z.attainedArchived(z.queue(f.Record.Queue), -f.Record.Attained)
		}
		z.adopt(f.Record)
	case protocol.HomeDropped:
		if j := z.jobs[f.Job]; j != nil {
			z.remove(j)
		}
		if f.Count > 0 {
			z.attainedArchived(z.queue(f.Text), -f.Count)
		}
		z.bury(f.Job, f.Generation)
	case protocol.HomeArchived:
		if j := z.jobs[f.Job]; j != nil {
			z.remove(j)
			z.attainedArchived(j.q, j.work().attained)
		}
	case protocol.QueueKnown:
		q := z.queue(f.Queue.Name)
		z.sum -= queueSum(q)
		alive := q.alive
		z.populate(q, -alive)
		q.Queue = *f.Queue
		z.populate(q, alive)
		z.sum += queueSum(q)
		z.planner.Invalidate()
	case protocol.QueueCalibrated:
		q := z.queue(f.Standing.Queue)
		z.sum -= queueSum(q)
		q.attained += f.Standing.Archived - q.standing.Archived
		q.standing = *f.Standing
		z.sum += queueSum(q)
	case protocol.Taught:
		z.heed(f.Lesson)
	default:
		j := z.jobs[f.Job]
		invariant.Check(j != nil, "zone %s: fact %d is about job %q, which it does not have", z.cfg.ID, f.Kind, f.Job)
		z.records.Change(j)
		z.applyJob(j, &f)
		z.enroll(j)
		z.list(j)
		sum := j.hash()
		z.sum += sum - j.sum
		j.sum = sum
	}
}

// remove takes a job out of memory. What it had attained counts on for its queue until the zone comes up again.
func (z *Zone) remove(j *Job) {
	z.records.Remove(j)
	z.sum -= j.sum
	z.retire(j)
	z.strike(j)
	z.stay(j)
	if j.sold != nil {
		z.busy.drop(j, busySlot)
		z.publishing.Set(&j.sold.slots.publishing, j, quantity.Never)
	}
	delete(z.jobs, j.ID)
}

func (z *Zone) adopt(r *protocol.Record) {
	j := z.newEntry(z.queue(r.Queue), r)
	j.Spec, j.specSum = z.specs.Share(r.Spec)
	if w := j.sold; w != nil {
		for i := range w.claims {
			w.leases = append(w.leases, lease{token: w.claims[i].Token})
			z.hold(j, &w.claims[i])
		}
	}
	j.q.attained += r.Attained
	z.jobs[j.ID] = j
	switch {
	case r.Verdict.State.Final():
		z.close(j)
	case !j.complete():
		z.enliven(j)
	}
	z.armPublications(j)
	if len(j.work().claims) > 0 {
		z.busy.add(j, busySlot)
	}
	j.sum = j.hash()
	z.sum += j.sum
	z.records.Add(j)
	z.enroll(j)
	z.list(j)
	z.changed(j)
}

func (z *Zone) applyJob(j *Job, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		z.applyClaim(j, f)
	case protocol.ClaimExtended:
		c, w := &j.work().claims[z.mustClaim(j, f.Token)], j.makeWork()
		w.claimed = w.claimed.Remove(c.Range).Add(f.Range)
		invariant.Check(!w.committed.Overlaps(f.Range), "job %s: the extension %v of %v overlaps committed work", j.ID, f.Range, f.Token)
		c.Plan.Extended += f.End.Sub(c.End)
		c.Range, c.End = f.Range, f.End
		z.resell(j, c)
		if !planted.In(planted.ForgetStale) {
			z.touch(j)
		}
	case protocol.Released:
		z.settle(j, f, job.Range{})
	case protocol.Committed:
		c, w := j.work().claims[z.mustClaim(j, f.Token)], j.makeWork()
		invariant.Check(!f.Range.Empty() && c.Range.Contains(f.Range) && !w.committed.Overlaps(f.Range),
			"job %s: committing %v of claim %v a second time or beyond it", j.ID, f.Range, c.Range)
		z.settle(j, f, f.Range)
		w.committed = w.committed.Add(f.Range)
		if f.Skipped { // there is nothing to publish of what was given up
			w.skipped = w.skipped.Add(f.Range)
		} else {
			z.awaitPublication(j, &c, f.Range)
		}
		if j.Spec.Kind == job.Steps && f.Result.Checkpoint && (w.resume.Zero() || !planted.In(planted.StaleCheckpoint)) {
			w.resume = f.Token
		}
		if j.complete() {
			z.retire(j) // it has no use for a window any more
		}
	case protocol.OutputPublished:
		z.applyPublished(j, f.Token)
	case protocol.Calibrated:
		j.learn(f.Learned)
		entryOf(j).rigid.LookAnew()
		z.touch(j)
	case protocol.HomeHeld:
		j.Held = f.Flag
		entryOf(j).foreseen.told = false // how long its owner pauses it is nobody's estimate
		z.changed(j)
	case protocol.Ended:
		end := j.makeFate()
		end.verdict, end.ended = f.Verdict, f.At
		z.retire(j)
		z.close(j)
	case protocol.HomeReopened:
		z.applyReopened(j, f)
	}
}

func (z *Zone) applyClaim(j *Job, f *protocol.Fact) {
	w := j.makeWork()
	free := !w.committed.Overlaps(f.Range) && !w.claimed.Overlaps(f.Range) && !f.Range.Empty()
	invariant.Check(free, "job %s: %v is sold a second time", j.ID, f.Range)
	c := protocol.Claim{
		Token: f.Token, Generation: j.Generation, Node: f.Node, Slice: f.Slice, Also: f.Also, Speed: f.Speed, Range: f.Range,
		Start: f.Start, End: f.End, Demand: f.Demand, Plan: f.Plan, Bid: f.Bid, Asked: f.At,
	}
	if c.Bid != nil {
		z.credit(j.q, -c.Bid.Price)
	}
	w.served = max(w.served, f.Start)
	i, found := slices.BinarySearchFunc(w.claims, c.Token, func(c protocol.Claim, t job.Token) int { return c.Token.Compare(t) })
	invariant.Check(!found, "job %s: token %v is claimed twice", j.ID, c.Token)
	w.claims = slices.Insert(w.claims, i, c)
	w.claimed = w.claimed.Add(f.Range)
	w.leases = append(w.leases, lease{token: c.Token})
	z.hold(j, &w.claims[i])
	z.busy.add(j, busySlot)
	z.touch(j)
}

// settle ends a claim: what it held is free again but for committed, and it becomes part of the past.
func (z *Zone) settle(j *Job, f *protocol.Fact, committed job.Range) {
	i, w := z.mustClaim(j, f.Token), j.makeWork()
	c := w.claims[i]
	w.claims = slices.Delete(w.claims, i, i+1)
	w.claimed = w.claimed.Remove(c.Range)
	if l := j.lease(f.Token); l.running != 0 {
		j.q.going.remove(l.running, policy.MiB(c.Demand))
	}
	w.leases = slices.DeleteFunc(w.leases, func(l lease) bool { return l.token == f.Token })
	if len(w.claims) == 0 {
		z.busy.drop(j, busySlot)
	}
	z.release(j, &c)
	q := j.q
	z.freed(q)

	p := protocol.Past{Claim: c, Committed: committed, Skipped: f.Skipped, Outcome: job.Lost, Detail: f.Text}
	if r := f.Result; r != nil {
		p.Outcome, p.RealStart, p.RealEnd, p.Peak, p.Prepare = r.Outcome, r.Start, r.End, r.Peak, r.Prepare
		if p.Detail == "" {
			p.Detail = r.Detail
		}
		attained := policy.MemoryTime(c.Demand, r.Ran())
		w.attained += attained
		q.attained += attained
		if r.Start != 0 && (w.started == 0 || r.Start < w.started) {
			w.started = r.Start
		}
	}
	w.past = append(w.past, p)
	w.fruitless += fruitlessOf(&p)
	w.pastSum += pastSum(w.past, len(w.past)-1)
	if p.RealStart == 0 && c.Bid != nil {
		if !planted.In(planted.ForgetWait) {
			w.served = c.Bid.Since // it was not served after all
		}
		z.credit(q, c.Bid.Price)
	} else {
		w.served = max(w.served, f.At)
	}
	if f.At.Add(z.cfg.MinWindow) < c.End {
		z.onSlices(&c, func(s *slice) { z.floor.EndedEarly(&s.floor) })
	}
	z.changed(j)
}

func (z *Zone) mustClaim(j *Job, t job.Token) int {
	i := j.claim(t)
	invariant.Check(i >= 0, "job %s: token %v has no claim", j.ID, t)
	return i
}

// Capture implements capture.Source. Graves go first: one folds before a later life of its job.
func (z *Zone) Capture() capture.Run {
	var small []protocol.Fact
	for id, last := range z.buried.all() {
		small = append(small, protocol.Fact{Kind: protocol.HomeDropped, Job: id, Generation: last})
	}
	for _, name := range z.queueNames() {
		q := z.queues[name].Queue
		small = append(small, protocol.Fact{Kind: protocol.QueueKnown, Queue: &q})
		if s := z.queues[name].standing; s != (protocol.Standing{}) {
			small = append(small, protocol.Fact{Kind: protocol.QueueCalibrated, Standing: &s})
		}
		for _, t := range z.queues[name].templates {
			l := protocol.Lesson{Queue: name, Template: t.name, Runs: slices.Clone(t.runs.List)}
			small = append(small, protocol.Fact{Kind: protocol.Taught, Lesson: &l})
		}
	}
	return z.records.Begin(z.self, small)
}

// all are the jobs by id.
func (z *Zone) all() []*Job {
	all := make([]*Job, 0, len(z.jobs))
	for _, j := range z.jobs { //sluice:sorted the jobs are sorted before anybody sees them
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// queueNames in order.
func (z *Zone) queueNames() []string {
	names := make([]string, 0, len(z.queues))
	for name := range z.queues { //sluice:sorted the names are sorted before anybody sees them
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
