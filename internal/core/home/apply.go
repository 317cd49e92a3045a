package home

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
	"sluice.dev/sluice/internal/core/trp"
)

// fact decides f: it is applied at once and made durable before any effect of the step leaves.
func (h *Ledger) fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = h.self
	if !planted.In(planted.ForgetCommit) || f.Kind != protocol.Committed {
		out.Facts = append(out.Facts, f)
	}
	h.apply(&f)
}

// Apply folds one fact into the durable state. It is the only place where that changes.
func (h *Ledger) Apply(f protocol.Fact) { h.apply(&f) }

// apply neither keeps nor changes the fact.
func (h *Ledger) apply(f *protocol.Fact) {
	switch f.Kind {
	case protocol.HomeTaken:
		h.adopt(&protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: f.Spec, Queue: f.Spec.Queue, Submitted: f.At})
	case protocol.HomeKept:
		if f.Flag {
			h.attainedArchived(h.queue(f.Record.Queue), -f.Record.Attained)
		}
		h.adopt(f.Record)
	case protocol.HomeDropped:
		if j := h.Job(f.Job); j != nil {
			h.remove(j)
		}
		if f.Count > 0 {
			h.attainedArchived(h.queue(f.Text), -f.Count)
		}
		h.bury(f.Job, f.Generation)
	case protocol.HomeArchived:
		if j := h.Job(f.Job); j != nil {
			h.remove(j)
			h.attainedArchived(j.q, j.work().attained)
		}
	case protocol.QueueKnown:
		q := h.queue(f.Queue.Name)
		h.sum -= queueSum(q)
		alive := q.alive
		h.populate(q, -alive)
		q.Queue = *f.Queue
		h.populate(q, alive)
		h.sum += queueSum(q)
		h.watch.QueuesChanged()
	case protocol.QueueCalibrated:
		q := h.queue(f.Standing.Queue)
		h.sum -= queueSum(q)
		q.attained += f.Standing.Archived - q.standing.Archived
		q.standing = *f.Standing
		h.sum += queueSum(q)
	case protocol.Taught:
		h.heed(f.Lesson)
	default:
		j := h.Job(f.Job)
		if j == nil {
			invariant.Check(false, "home of %s: fact %d is about job %q, which it does not have", h.self.ID, f.Kind, f.Job)
		}
		h.records.Change(j)
		h.applyJob(j, f)
		h.enroll(j)
		h.list(j)
		sum := j.hash()
		h.sum += sum - j.sum
		j.sum = sum
	}
}

// remove takes a job out of memory. What it had attained counts on for its queue until the ledger comes up again.
func (h *Ledger) remove(j *Job) {
	h.records.Remove(j)
	h.sum -= j.sum
	h.retire(j)
	h.strike(j)
	h.stay(j)
	if j.sold != nil {
		h.parts(j, -1)
		h.busy.drop(j, busySlot)
		h.publishing.Set(&j.sold.slots.publishing, j, quantity.Never)
	}
	delete(h.jobs, j.ID)
	h.sought, h.found = j.ID, nil
}

func (h *Ledger) adopt(r *protocol.Record) {
	j := h.make(h.queue(r.Queue), r)
	j.Spec, j.specSum = h.specs.Share(r.Spec)
	if w := j.sold; w != nil {
		for i := range w.claims {
			w.leases = append(w.leases, Lease{token: w.claims[i].Token})
			h.hold(j, &w.claims[i])
		}
	}
	j.q.attained += r.Attained
	h.jobs[j.ID] = j
	h.sought, h.found = j.ID, j
	switch {
	case r.Verdict.State.Final():
		h.close(j)
	case !j.Complete():
		h.enliven(j)
	}
	h.armPublications(j)
	if len(j.work().claims) > 0 {
		h.busy.add(j, busySlot)
	}
	j.sum = j.hash()
	h.sum += j.sum
	h.records.Add(j)
	h.enroll(j)
	h.list(j)
	h.changed(j)
}

func (h *Ledger) applyJob(j *Job, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		h.applyClaim(j, f)
	case protocol.ClaimExtended:
		c, w := &j.work().claims[h.mustClaim(j, f.Token)], j.makeWork()
		w.claimed = w.claimed.Remove(c.Range).Add(f.Range)
		if w.committed.Overlaps(f.Range) {
			invariant.Check(false, "job %s: the extension %v of %v overlaps committed work", j.ID, f.Range, f.Token)
		}
		c.Plan.Extended += f.End.Sub(c.End)
		c.Range, c.End = f.Range, f.End
		if f.Peak != (trp.Peak{}) {
			c.Peak = f.Peak
		}
		h.watch.Resold(j, c)
		if !planted.In(planted.ForgetStale) {
			h.touch(j)
		}
	case protocol.Released:
		h.settle(j, f, job.Range{})
	case protocol.Committed:
		c, w := j.work().claims[h.mustClaim(j, f.Token)], j.makeWork()
		if f.Range.Empty() || !c.Range.Contains(f.Range) || w.committed.Overlaps(f.Range) {
			invariant.Check(false, "job %s: committing %v of claim %v a second time or beyond it", j.ID, f.Range, c.Range)
		}
		h.settle(j, f, f.Range)
		w.committed = w.committed.Add(f.Range)
		if f.Skipped { // there is nothing to publish of what was given up
			w.skipped = w.skipped.Add(f.Range)
		} else {
			h.awaitPublication(j, &c, f.Range)
		}
		if j.Spec.Kind == job.Steps && f.Result.Checkpoint && (w.resume.Zero() || !planted.In(planted.StaleCheckpoint)) {
			w.resume = f.Token
		}
		if j.Complete() {
			h.retire(j) // it has no use for a window any more
		}
	case protocol.OutputPublished:
		h.applyPublished(j, f.Token)
	case protocol.Calibrated:
		j.learn(f.Learned)
		h.watch.Moved(j)
		h.touch(j)
	case protocol.HomeHeld:
		j.Held = f.Flag
		h.watch.Paused(j)
		h.changed(j)
	case protocol.Ended:
		end := j.makeFate()
		end.verdict, end.ended, end.moving = f.Verdict, f.At, ""
		h.retire(j)
		h.close(j)
	case protocol.HomeReopened:
		h.applyReopened(j, f)
	case protocol.HomeLeaving:
		h.applyLeaving(j, f.Text)
	}
}

func (h *Ledger) applyClaim(j *Job, f *protocol.Fact) {
	w := j.makeWork()
	if w.committed.Overlaps(f.Range) || w.claimed.Overlaps(f.Range) || f.Range.Empty() {
		invariant.Check(false, "job %s: %v is sold a second time", j.ID, f.Range)
	}
	c := protocol.Claim{
		Token: f.Token, Generation: j.Generation, Node: f.Node, Slice: f.Slice, Also: f.Also, Members: f.Members, Speed: f.Speed, Range: f.Range,
		Start: f.Start, End: f.End, Demand: f.Demand, Peak: f.Peak, Plan: f.Plan, Bid: f.Bid, Asked: f.At,
	}
	if c.Bid != nil {
		h.credit(j.q, -c.Bid.Price)
	}
	w.served = max(w.served, f.Start)
	i := 0
	for ; i < len(w.claims) && w.claims[i].Token.Compare(c.Token) <= 0; i++ {
		if w.claims[i].Token == c.Token {
			invariant.Check(false, "job %s: token %v is claimed twice", j.ID, c.Token)
		}
	}
	w.claims = slices.Insert(w.claims, i, c)
	w.claimed = w.claimed.Add(f.Range)
	w.leases = append(w.leases, Lease{token: c.Token})
	h.hold(j, &w.claims[i])
	h.busy.add(j, busySlot)
	h.touch(j)
}

// hold has a claim of a job stand.
func (h *Ledger) hold(j *Job, c *protocol.Claim) {
	j.q.held += 1 + len(c.Also)
	h.watch.Sold(j, c)
}

// settle ends a claim: what it held is free again but for committed, and it becomes part of the past.
func (h *Ledger) settle(j *Job, f *protocol.Fact, committed job.Range) {
	i, w := h.mustClaim(j, f.Token), j.makeWork()
	c := w.claims[i]
	w.settled = max(w.settled, f.At)
	w.claims = slices.Delete(w.claims, i, i+1)
	w.claimed = w.claimed.Remove(c.Range)
	if l := j.Lease(f.Token); l.running != 0 {
		j.q.going.remove(l.running, policy.MiB(c.Demand))
	}
	w.leases = slices.DeleteFunc(w.leases, func(l Lease) bool { return l.token == f.Token })
	if len(w.claims) == 0 {
		h.parts(j, -1)
		h.busy.drop(j, busySlot)
	}
	q := j.q
	q.held -= 1 + len(c.Also)
	h.freed(q)

	p := protocol.Past{Claim: c, Committed: committed, Skipped: f.Skipped, Outcome: job.Lost, Detail: f.Text}
	if r := f.Result; r != nil {
		p.Outcome, p.RealStart, p.RealEnd, p.Peak, p.Prepare, p.Waited = r.Outcome, r.Start, r.End, r.Peak, r.Prepare, r.Waited
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
	h.watch.Freed(j, &w.past[len(w.past)-1].Claim, f.At)
	if p.RealStart == 0 && c.Bid != nil {
		if !planted.In(planted.ForgetWait) {
			w.served = c.Bid.Since // it was not served after all
		}
		h.credit(q, c.Bid.Price)
	} else {
		w.served = max(w.served, f.At)
	}
	h.changed(j)
}

func (h *Ledger) mustClaim(j *Job, t job.Token) int {
	i := j.claim(t)
	if i < 0 {
		invariant.Check(false, "job %s: token %v has no claim", j.ID, t)
	}
	return i
}

// Capture implements capture.Source. Graves go first: one folds before a later life of its job.
func (h *Ledger) Capture() capture.Run {
	var small []protocol.Fact
	for id, last := range h.buried.all() {
		small = append(small, protocol.Fact{Kind: protocol.HomeDropped, Job: id, Generation: last})
	}
	for _, name := range h.queueNames() {
		q := h.queues[name].Queue
		small = append(small, protocol.Fact{Kind: protocol.QueueKnown, Queue: &q})
		if s := h.queues[name].standing; s != (protocol.Standing{}) {
			small = append(small, protocol.Fact{Kind: protocol.QueueCalibrated, Standing: &s})
		}
		for _, t := range h.queues[name].templates {
			l := protocol.Lesson{Queue: name, Template: t.name, Runs: slices.Clone(t.runs.List)}
			small = append(small, protocol.Fact{Kind: protocol.Taught, Lesson: &l})
		}
	}
	return h.records.Begin(h.self, small)
}

// all are the jobs by id.
func (h *Ledger) all() []*Job {
	all := make([]*Job, 0, len(h.jobs))
	for _, j := range h.jobs { //sluice:sorted the jobs are sorted before anybody sees them
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// queueNames in order.
func (h *Ledger) queueNames() []string {
	names := make([]string, 0, len(h.queues))
	for name := range h.queues { //sluice:sorted the names are sorted before anybody sees them
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
