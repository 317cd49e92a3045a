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
		z.adopt(protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation.Number(), Spec: f.Spec, Queue: f.Spec.Queue, Submitted: f.At})
	case protocol.HomeKept:
		r := *f.Record
		if f.Flag {
			z.attainedArchived(z.queue(r.Queue), -r.Attained)
		}
		r.Generation = r.Generation.Number()
		r.Claims, r.Past, r.Unpublished = slices.Clone(r.Claims), slices.Clone(r.Past), slices.Clone(r.Unpublished)
		r.Committed, r.Claimed, r.Skipped = slices.Clone(r.Committed), slices.Clone(r.Claimed), slices.Clone(r.Skipped)
		z.adopt(r)
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
			z.attainedArchived(s.q, s.Attained)
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
		sum := recordSum(&s.Record, s.parts)
		z.sum += sum - s.sum
		s.sum = sum
	}
}

// newState is a job with what its floor asks of it.
func newState(q *queue, r protocol.Record) *state {
	s := &state{Record: r, q: q}
	s.floor.Demand = (*demand)(s)
	s.keepRigid()
	return s
}

// remove takes a job out of memory. What it had attained counts on for its queue until the zone comes up again.
func (z *Zone) remove(s *state) {
	z.records.Remove(s)
	z.sum -= s.sum
	z.retire(s)
	z.strike(s)
	z.busy.drop(s, busySlot)
	z.stay(s)
	z.publishing.Set(&s.slots.publishing, s, quantity.Never)
	delete(z.jobs, s.Job)
}

func (z *Zone) adopt(r protocol.Record) {
	s := newState(z.queue(r.Queue), r)
	for i := range s.Claims {
		s.leases = append(s.leases, lease{token: s.Claims[i].Token})
		z.hold(s, &s.Claims[i])
	}
	s.q.attained += r.Attained
	z.jobs[r.Job] = s
	switch {
	case r.Verdict.State.Final():
		z.close(s)
	case !s.complete():
		z.enliven(s)
	}
	z.armPublications(s)
	if len(s.Claims) > 0 {
		z.busy.add(s, busySlot)
	}
	s.parts = sumsOf(&s.Record)
	s.sum = recordSum(&s.Record, s.parts)
	z.sum += s.sum
	z.records.Add(s)
	for i := range s.Past {
		s.fruitless += fruitlessOf(&s.Past[i])
	}
	z.enroll(s)
	z.changed(s)
}

// fruitlessOf is 1 for a subjob that committed nothing.
func fruitlessOf(p *protocol.Past) int {
	if p.Committed.Empty() {
		return 1
	}
	return 0
}

func (z *Zone) applyJob(s *state, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		z.applyClaim(s, f)
	case protocol.ClaimExtended:
		c := &s.Claims[z.mustClaim(s, f.Token)]
		s.Claimed = s.Claimed.Remove(c.Range).Add(f.Range)
		invariant.Check(!s.Committed.Overlaps(f.Range), "job %s: the extension %v of %v overlaps committed work", s.Job, f.Range, f.Token)
		c.Plan.Extended += f.End.Sub(c.End)
		c.Range, c.End = f.Range, f.End
		z.resell(s, c)
		if !planted.In(planted.ForgetStale) {
			z.touch(s)
		}
	case protocol.Released:
		z.settle(s, f, job.Range{})
	case protocol.Committed:
		c := s.Claims[z.mustClaim(s, f.Token)]
		invariant.Check(!f.Range.Empty() && c.Range.Contains(f.Range) && !s.Committed.Overlaps(f.Range),
			"job %s: committing %v of claim %v a second time or beyond it", s.Job, f.Range, c.Range)
		z.settle(s, f, f.Range)
		s.Committed = s.Committed.Add(f.Range)
		if f.Skipped { // there is nothing to publish of what was given up
			s.Skipped = s.Skipped.Add(f.Range)
		} else {
			z.awaitPublication(s, &c, f.Range)
		}
		if s.Spec.Kind == job.Steps && f.Result.Checkpoint && (s.Resume.Zero() || !planted.In(planted.StaleCheckpoint)) {
			s.Resume = f.Token
		}
		if s.complete() {
			z.retire(s) // it has no use for a window any more
		}
	case protocol.OutputPublished:
		z.applyPublished(s, f.Token)
	case protocol.Calibrated:
		if f.Learned.Safe != s.Learned.Safe {
			s.parts.safe = safeSum(f.Learned)
		}
		s.Learned = *f.Learned
		s.rigid.LookAnew()
		z.touch(s)
	case protocol.HomeHeld:
		s.Held = f.Flag
		s.foreseen.told = false // how long its owner pauses it is nobody's estimate
		z.changed(s)
	case protocol.Ended:
		s.Verdict, s.Ended = f.Verdict, f.At
		z.retire(s)
		z.close(s)
	case protocol.HomeReopened:
		z.applyReopened(s, f)
	}
}

func (z *Zone) applyClaim(s *state, f *protocol.Fact) {
	free := !s.Committed.Overlaps(f.Range) && !s.Claimed.Overlaps(f.Range) && !f.Range.Empty()
	invariant.Check(free, "job %s: %v is sold a second time", s.Job, f.Range)
	c := protocol.Claim{
		Token: f.Token, Generation: s.Generation, Node: f.Node, Slice: f.Slice, Also: f.Also, Speed: f.Speed, Range: f.Range,
		Start: f.Start, End: f.End, Demand: f.Demand, Plan: f.Plan, Bid: f.Bid, Asked: f.At,
	}
	if c.Bid != nil {
		z.credit(s.q, -c.Bid.Price)
	}
	s.Served = max(s.Served, f.Start)
	i, found := slices.BinarySearchFunc(s.Claims, c.Token, func(c protocol.Claim, t job.Token) int { return c.Token.Compare(t) })
	invariant.Check(!found, "job %s: token %v is claimed twice", s.Job, c.Token)
	s.Claims = slices.Insert(s.Claims, i, c)
	s.Claimed = s.Claimed.Add(f.Range)
	s.leases = append(s.leases, lease{token: c.Token})
	z.hold(s, &s.Claims[i])
	z.busy.add(s, busySlot)
	z.touch(s)
}

// settle ends a claim: what it held is free again but for committed, and it becomes part of the past.
func (z *Zone) settle(s *state, f *protocol.Fact, committed job.Range) {
	i := z.mustClaim(s, f.Token)
	c := s.Claims[i]
	s.Claims = slices.Delete(s.Claims, i, i+1)
	s.Claimed = s.Claimed.Remove(c.Range)
	if l := s.lease(f.Token); l.running != 0 {
		s.q.going.remove(l.running, policy.MiB(c.Demand))
	}
	s.leases = slices.DeleteFunc(s.leases, func(l lease) bool { return l.token == f.Token })
	if len(s.Claims) == 0 {
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
		s.Attained += attained
		q.attained += attained
		if r.Start != 0 && (s.Started == 0 || r.Start < s.Started) {
			s.Started = r.Start
		}
	}
	s.Past = append(s.Past, p)
	s.fruitless += fruitlessOf(&p)
	s.parts.past += pastSum(&s.Record, len(s.Past)-1)
	if p.RealStart == 0 && c.Bid != nil {
		if !planted.In(planted.ForgetWait) {
			s.Served = c.Bid.Since // it was not served after all
		}
		z.credit(q, c.Bid.Price)
	} else {
		s.Served = max(s.Served, f.At)
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
	for _, g := range z.buried {
		small = append(small, protocol.Fact{Kind: protocol.HomeDropped, Job: g.id, Generation: g.last})
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

// AppendFacts implements capture.Part.
func (s *state) AppendFacts(out []protocol.Fact) []protocol.Fact {
	r := s.Record
	r.Claims, r.Past, r.Unpublished = slices.Clone(r.Claims), slices.Clone(r.Past), slices.Clone(r.Unpublished)
	r.Committed, r.Claimed, r.Skipped = slices.Clone(r.Committed), slices.Clone(r.Claimed), slices.Clone(r.Skipped)
	if planted.In(planted.ForgetPast) {
		for i := range max(0, len(r.Past)-1) {
			r.Past[i].Committed = job.Range{}
		}
	}
	return append(out, protocol.Fact{Kind: protocol.HomeKept, Job: s.Job, Record: &r})
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
