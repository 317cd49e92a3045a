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
		if s := z.jobs[f.Job]; s != nil {
			z.remove(s)
		}
		if f.Count > 0 {
			z.attainedArchived(z.queue(f.Text), -f.Count)
		}
		z.bury(f.Job, f.Generation)
	case protocol.HomeArchived:
		if s := z.jobs[f.Job]; s != nil {
			z.remove(s)
			z.attainedArchived(s.q, s.work().attained)
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
		s := z.jobs[f.Job]
		invariant.Check(s != nil, "zone %s: fact %d is about job %q, which it does not have", z.cfg.ID, f.Kind, f.Job)
		z.records.Change(s)
		z.applyJob(s, &f)
		z.enroll(s)
		z.list(s)
		sum := s.hash()
		z.sum += sum - s.sum
		s.sum = sum
	}
}

// remove takes a job out of memory. What it had attained counts on for its queue until the zone comes up again.
func (z *Zone) remove(s *state) {
	z.records.Remove(s)
	z.sum -= s.sum
	z.retire(s)
	z.strike(s)
	z.stay(s)
	if s.sold != nil {
		z.busy.drop(s, busySlot)
		z.publishing.Set(&s.sold.slots.publishing, s, quantity.Never)
	}
	delete(z.jobs, s.Job)
}

func (z *Zone) adopt(r *protocol.Record) {
	s := newState(z.queue(r.Queue), r)
	s.Spec, s.specSum = z.specs.Share(r.Spec)
	if w := s.sold; w != nil {
		for i := range w.claims {
			w.leases = append(w.leases, lease{token: w.claims[i].Token})
			z.hold(s, &w.claims[i])
		}
	}
	s.q.attained += r.Attained
	z.jobs[s.Job] = s
	switch {
	case r.Verdict.State.Final():
		z.close(s)
	case !s.complete():
		z.enliven(s)
	}
	z.armPublications(s)
	if len(s.work().claims) > 0 {
		z.busy.add(s, busySlot)
	}
	s.sum = s.hash()
	z.sum += s.sum
	z.records.Add(s)
	z.enroll(s)
	z.list(s)
	z.changed(s)
}

func (z *Zone) applyJob(s *state, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		z.applyClaim(s, f)
	case protocol.ClaimExtended:
		c, w := &s.work().claims[z.mustClaim(s, f.Token)], s.makeWork()
		w.claimed = w.claimed.Remove(c.Range).Add(f.Range)
		invariant.Check(!w.committed.Overlaps(f.Range), "job %s: the extension %v of %v overlaps committed work", s.Job, f.Range, f.Token)
		c.Plan.Extended += f.End.Sub(c.End)
		c.Range, c.End = f.Range, f.End
		z.resell(s, c)
		if !planted.In(planted.ForgetStale) {
			z.touch(s)
		}
	case protocol.Released:
		z.settle(s, f, job.Range{})
	case protocol.Committed:
		c, w := s.work().claims[z.mustClaim(s, f.Token)], s.makeWork()
		invariant.Check(!f.Range.Empty() && c.Range.Contains(f.Range) && !w.committed.Overlaps(f.Range),
			"job %s: committing %v of claim %v a second time or beyond it", s.Job, f.Range, c.Range)
		z.settle(s, f, f.Range)
		w.committed = w.committed.Add(f.Range)
		if f.Skipped { // there is nothing to publish of what was given up
			w.skipped = w.skipped.Add(f.Range)
		} else {
			z.awaitPublication(s, &c, f.Range)
		}
		if s.Spec.Kind == job.Steps && f.Result.Checkpoint && (w.resume.Zero() || !planted.In(planted.StaleCheckpoint)) {
			w.resume = f.Token
		}
		if s.complete() {
			z.retire(s) // it has no use for a window any more
		}
	case protocol.OutputPublished:
		z.applyPublished(s, f.Token)
	case protocol.Calibrated:
		s.learn(f.Learned)
		s.rigid.LookAnew()
		z.touch(s)
	case protocol.HomeHeld:
		s.Held = f.Flag
		s.foreseen.told = false // how long its owner pauses it is nobody's estimate
		z.changed(s)
	case protocol.Ended:
		end := s.makeFate()
		end.verdict, end.ended = f.Verdict, f.At
		z.retire(s)
		z.close(s)
	case protocol.HomeReopened:
		z.applyReopened(s, f)
	}
}

func (z *Zone) applyClaim(s *state, f *protocol.Fact) {
	w := s.makeWork()
	free := !w.committed.Overlaps(f.Range) && !w.claimed.Overlaps(f.Range) && !f.Range.Empty()
	invariant.Check(free, "job %s: %v is sold a second time", s.Job, f.Range)
	c := protocol.Claim{
		Token: f.Token, Generation: s.Generation, Node: f.Node, Slice: f.Slice, Also: f.Also, Speed: f.Speed, Range: f.Range,
		Start: f.Start, End: f.End, Demand: f.Demand, Plan: f.Plan, Bid: f.Bid, Asked: f.At,
	}
	if c.Bid != nil {
		z.credit(s.q, -c.Bid.Price)
	}
	w.served = max(w.served, f.Start)
	i, found := slices.BinarySearchFunc(w.claims, c.Token, func(c protocol.Claim, t job.Token) int { return c.Token.Compare(t) })
	invariant.Check(!found, "job %s: token %v is claimed twice", s.Job, c.Token)
	w.claims = slices.Insert(w.claims, i, c)
	w.claimed = w.claimed.Add(f.Range)
	w.leases = append(w.leases, lease{token: c.Token})
	z.hold(s, &w.claims[i])
	z.busy.add(s, busySlot)
	z.touch(s)
}

// settle ends a claim: what it held is free again but for committed, and it becomes part of the past.
func (z *Zone) settle(s *state, f *protocol.Fact, committed job.Range) {
	i, w := z.mustClaim(s, f.Token), s.makeWork()
	c := w.claims[i]
	w.claims = slices.Delete(w.claims, i, i+1)
	w.claimed = w.claimed.Remove(c.Range)
	if l := s.lease(f.Token); l.running != 0 {
		s.q.going.remove(l.running, policy.MiB(c.Demand))
	}
	w.leases = slices.DeleteFunc(w.leases, func(l lease) bool { return l.token == f.Token })
	if len(w.claims) == 0 {
		z.busy.drop(s, busySlot)
	}
	z.release(s, &c)
	q := s.q
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
	z.changed(s)
}

func (z *Zone) mustClaim(s *state, t job.Token) int {
	i := s.claim(t)
	invariant.Check(i >= 0, "job %s: token %v has no claim", s.Job, t)
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
func (z *Zone) all() []*state {
	all := make([]*state, 0, len(z.jobs))
	for _, s := range z.jobs { //sluice:sorted the jobs are sorted before anybody sees them
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *state) int { return cmp.Compare(a.Job, b.Job) })
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
