package home

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Result is the fifth step. It commits only if the claim is current; a Result of a released claim is refused, and one
// that was settled before gets the same answer again.
func (h *Ledger) Result(now quantity.Instant, in *protocol.Message, end *protocol.Conclusion, out *protocol.Out) {
	counts := &protocol.Acknowledgement{}
	ack := protocol.Message{Kind: protocol.ResultAck, To: in.From, Token: in.Token, Job: in.Job, Body: counts}
	j := h.Job(in.Job)
	if j == nil || j.Epoch != in.Epoch {
		h.Send(out, ack)
		return
	}
	if gang, l, c, i := h.member(in); c != nil && c.Generation.Number() == in.Generation.Number() {
		h.memberGone(now, gang, l, c, i, end.Result, out)
		return
	}
	i := j.claim(in.Token)
	if i < 0 || j.work().claims[i].Generation.Number() != in.Generation.Number() {
		counts.Range = j.answered(in.Token)
		if planted.In(planted.CommitWithoutClaim) || planted.In(planted.PublishReleased) && counts.Range.Empty() {
			counts.Range = job.Range{From: end.Range.From, To: max(end.Range.From, min(end.Result.Progress, end.Range.To))}
		}
		h.Send(out, ack)
		return
	}
	h.conclude(now, j, i, end.Result, in.From, out)
}

// conclude settles the claim at a place by its result, and tells its node, or those of its members.
func (h *Ledger) conclude(now quantity.Instant, j *Job, i int, r *job.Result, node protocol.Address, out *protocol.Out) {
	c := j.work().claims[i]
	h.taken(j, c.Token)
	remained := j.Lease(c.Token).remains
	j.outlived(remained != 0)
	if r.Start != 0 {
		h.watch.Began(j, r.Start) // Running was lost
	}
	done := j.completed(&c, r)
	learned, skip := h.learn(now, j, &c, r, done)
	if skip {
		done = c.Range
	}
	h.observe(j, &c, r, done, &learned, out)
	h.watch.Ends(j, &j.work().claims[i], r, done, out)
	if done.Empty() {
		h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, Result: r, At: now})
	} else {
		h.fact(out, protocol.Fact{Kind: protocol.Committed, Job: j.ID, Token: c.Token, Range: done, Result: r, Skipped: skip, At: now})
	}
	h.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Learned: &learned})
	if skip {
		done = job.Range{} // there is nothing to publish
	}
	if j.Complete() {
		h.teach(j, out)
	}
	w := j.makeWork()
	w.publishAsked, w.publishTries = now, 0
	h.armPublications(j)
	if planted.In(planted.PublishAll) {
		done = c.Range
	}
	if len(c.Members) > 0 {
		h.confirm(j.ID, c.Members, done, out)
	} else {
		h.Send(out, protocol.Message{Kind: protocol.ResultAck, To: node, Token: c.Token, Job: j.ID, Body: out.Acknowledgement(protocol.Acknowledgement{Range: done})})
	}
	h.ail(now, j, r)
	if bad := learned.Failures + learned.Kills + j.met().outlived; bad > 0 && !j.Complete() && j.Leaving() == "" {
		pause := h.cfg.Backoff << min(bad-1, 6)
		if remained != 0 { // as long as the slice could not be sold
			pause = max(pause, min(mostPause, remained.Sub(c.End)))
		}
		h.rest(now, j, pause)
	}
	h.settled(now, j, out)
}

// had says whether a claim under this token was settled.
func (j *Job) had(t job.Token) bool {
	return slices.ContainsFunc(j.work().past, func(p protocol.Past) bool { return p.Token == t || protocol.MemberOf(p.Members, t) >= 0 })
}

// answered is the part of a settled subjob that was published.
func (j *Job) answered(t job.Token) job.Range {
	for i := len(j.work().past) - 1; i >= 0; i-- {
		if p := &j.work().past[i]; p.Token == t || protocol.MemberOf(p.Members, t) >= 0 {
			if p.Skipped && !planted.In(planted.PublishSkipped) {
				return job.Range{}
			}
			return p.Committed
		}
	}
	return job.Range{}
}

// completed is the part of a claim that a result completes: as far as the result says and within the claim, on the grid or
// at its end, and for steps only with the checkpoint that belongs to it, unless it finishes the job. Success alone says
// nothing about the claim's end: it may have been extended without the node, or without the program, having heard of it.
func (j *Job) completed(c *protocol.Claim, r *job.Result) job.Range {
	to := min(r.Progress, c.Range.To)
	if planted.In(planted.TrustProgress) && to > c.Range.From {
		to = c.Range.To
	}
	if j.Spec.Kind == job.Rigid && r.Outcome != job.Done {
		to = c.Range.From
	}
	if to < c.Range.To && !j.suspected(c.Range.From) {
		to = max(c.Range.From, to/j.Spec.Grid*j.Spec.Grid)
	}
	if j.Spec.Kind == job.Steps && !r.Checkpoint && to < j.Spec.Total {
		to = c.Range.From
	}
	return job.Range{From: c.Range.From, To: max(to, c.Range.From)}
}

// settled decides, after a claim is settled, whether the job is over.
func (h *Ledger) settled(now quantity.Instant, j *Job, out *protocol.Out) {
	switch {
	case j.fate().verdict.State.Final():
	case now >= h.Closes(j):
		h.end(now, j, j.unconfirmed(), out)
	case j.Complete() && !j.finished():
	case j.Complete():
		v := job.Verdict{State: job.Finished, Reason: "all of it is committed"}
		if n := j.work().skipped.Len(); n > 0 {
			v.Reason = fmt.Sprintf("all of it is committed but for %d bad %ss: %v", n, j.Spec.UnitName(), first(j.work().skipped, 5))
		}
		h.end(now, j, v, out)
	case j.fate().dropping.State != job.Waiting:
		h.end(now, j, j.fate().dropping, out)
	default:
		if why := h.hopeless(j); why != "" {
			h.end(now, j, job.Verdict{State: job.Failed, Reason: why}, out)
		}
	}
	h.surrendered(j, out)
}

// hopeless says why a job can not go on, empty if it can.
func (h *Ledger) hopeless(j *Job) string {
	l := j.Learned()
	last := l.LastDetail
	if last != "" {
		last = ": " + last
	}
	if l.Failures >= max(1, j.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs ended without progress%s", l.Failures, last)
	}
	if l.Kills >= max(h.cfg.MaxKills, j.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs were ended from outside%s", l.Kills, last)
	}
	for _, bad := range l.Suspects {
		if bad.Limit < 0 {
			return fmt.Sprintf("%s %d fails whenever it runs alone%s", j.Spec.UnitName(), bad.Range.From, last)
		}
	}
	if bad, most := j.work().skipped.Len()-j.work().forgiven, max(16, j.Spec.Total/100); bad > most {
		return fmt.Sprintf("%d %ss were bad, more than the %d that may be skipped%s", bad, j.Spec.UnitName(), most, last)
	}
	return h.supply.Beyond(j)
}

func first(s job.Ranges, n int) job.Ranges { return s[:min(n, len(s))] }
