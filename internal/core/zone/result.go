package zone

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// result is the fifth step. It commits only if the claim is current; a Result of a released claim is refused, and one
// that was settled before gets the same answer again.
func (z *Zone) result(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	ack := protocol.Message{Kind: protocol.ResultAck, To: in.From, Token: in.Token, Job: in.Job}
	s := z.jobs[in.Job]
	if s == nil || s.Epoch != in.Epoch {
		z.send(out, ack)
		return
	}
	i := s.claim(in.Token)
	if i < 0 || s.work().claims[i].Generation.Number() != in.Generation.Number() {
		ack.Range = s.answered(in.Token)
		if planted.In(planted.CommitWithoutClaim) || planted.In(planted.PublishReleased) && ack.Range.Empty() {
			ack.Range = job.Range{From: in.Range.From, To: max(in.Range.From, min(in.Result.Progress, in.Range.To))}
		}
		z.send(out, ack)
		return
	}
	z.taken(s, in.Token)
	c, r := s.work().claims[i], in.Result
	if r.Start != 0 {
		z.begun(s, r.Start) // Running was lost
	}
	done := s.completed(&c, r)
	learned, skip := z.learn(now, s, &c, r, done)
	if skip {
		done = c.Range
	}
	z.observe(s, &c, r, done, &learned, out)
	z.floor.TellEnd(&s.floor, &c, r, done, out)
	if done.Empty() {
		z.fact(out, protocol.Fact{Kind: protocol.Released, Job: s.Job, Token: c.Token, Result: r, At: now})
	} else {
		z.fact(out, protocol.Fact{Kind: protocol.Committed, Job: s.Job, Token: c.Token, Range: done, Result: r, Skipped: skip, At: now})
	}
	z.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: s.Job, Learned: &learned})
	if skip {
		done = job.Range{} // there is nothing to publish
	}
	if s.complete() {
		z.teach(s, out)
	}
	w := s.makeWork()
	w.publishAsked, w.publishTries = now, 0
	z.armPublications(s)
	ack.Range = done
	if planted.In(planted.PublishAll) {
		ack.Range = c.Range
	}
	z.send(out, ack)
	z.ail(now, s, r)
	if bad := learned.Failures + learned.Kills; bad > 0 && !s.complete() {
		z.rest(now, s, z.cfg.Backoff<<min(bad-1, 6))
	}
	z.settled(now, s, out)
}

// answered is the part of a settled subjob that was published.
func (s *state) answered(t job.Token) job.Range {
	for i := len(s.work().past) - 1; i >= 0; i-- {
		if p := &s.work().past[i]; p.Token == t {
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
func (s *state) completed(c *protocol.Claim, r *job.Result) job.Range {
	to := min(r.Progress, c.Range.To)
	if planted.In(planted.TrustProgress) && to > c.Range.From {
		to = c.Range.To
	}
	if s.Spec.Kind == job.Rigid && r.Outcome != job.Done {
		to = c.Range.From
	}
	if to < c.Range.To && !s.suspected(c.Range.From) {
		to = max(c.Range.From, to/s.Spec.Grid*s.Spec.Grid)
	}
	if s.Spec.Kind == job.Steps && !r.Checkpoint && to < s.Spec.Total {
		to = c.Range.From
	}
	return job.Range{From: c.Range.From, To: max(to, c.Range.From)}
}

// settled decides, after a claim is settled, whether the job is over.
func (z *Zone) settled(now quantity.Instant, s *state, out *protocol.Out) {
	switch {
	case s.fate().verdict.State.Final():
	case s.complete() && !s.finished():
	case s.complete():
		v := job.Verdict{State: job.Finished, Reason: "all of it is committed"}
		if n := s.work().skipped.Len(); n > 0 {
			v.Reason = fmt.Sprintf("all of it is committed but for %d bad %ss: %v", n, unitName(s.Spec), first(s.work().skipped, 5))
		}
		z.end(now, s, v, out)
	case s.fate().dropping.State != job.Waiting:
		z.end(now, s, s.fate().dropping, out)
	default:
		if why := z.hopeless(s); why != "" {
			z.end(now, s, job.Verdict{State: job.Failed, Reason: why}, out)
		}
	}
}

// hopeless says why a job can not go on, empty if it can.
func (z *Zone) hopeless(s *state) string {
	l := s.learned()
	last := l.LastDetail
	if last != "" {
		last = ": " + last
	}
	if l.Failures >= max(1, s.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs ended without progress%s", l.Failures, last)
	}
	if l.Kills >= z.cfg.MaxKills {
		return fmt.Sprintf("%d times in a row its subjobs were ended from outside%s", l.Kills, last)
	}
	for _, bad := range l.Suspects {
		if bad.Limit < 0 {
			return fmt.Sprintf("%s %d fails whenever it runs alone%s", unitName(s.Spec), bad.Range.From, last)
		}
	}
	if bad, most := s.work().skipped.Len()-s.work().forgiven, max(16, s.Spec.Total/100); bad > most {
		return fmt.Sprintf("%d %ss were bad, more than the %d that may be skipped%s", bad, unitName(s.Spec), most, last)
	}
	if why := z.tooSlow(s); why != "" {
		return why
	}
	return z.outgrown(s)
}

// outgrown: its profile was raised after a memory kill, and now the job would be interested in no window that any slice
// there is could ever offer. Empty if it still would.
func (z *Zone) outgrown(s *state) string {
	scale := s.learned().MemoryScale
	free := job.NextFree(0, s.Spec.Total, s.work().committed, s.work().claimed)
	if free.Empty() || scale <= trp.Unscaled || len(s.work().claims) > 0 {
		return ""
	}
	most := z.largest(s.Spec)
	if most == 0 {
		return ""
	}
	least := s.safe().LeastOver(free.From, free.From+1, scale)
	if s.Spec.Kind == job.Rigid {
		least = s.safe().LeastOver(0, s.Spec.Total, scale)
	}
	if least > most {
		where := "the largest slice has"
		if n := s.width(); n > 1 {
			where = fmt.Sprintf("no node has %d slices with more than", n)
		}
		return fmt.Sprintf("it outgrew every slice: after %s it needs about %d MiB, %s %d MiB", job.MemoryKilled, least>>20, where, most>>20)
	}
	if s.Spec.Kind == job.Rigid {
		return ""
	}
	v := s.view()
	for _, v.Hopeful = range []bool{false, true} {
		for _, c := range z.floor.Classes() {
			if c.Slices() == 0 {
				continue
			}
			w := atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(s.Spec), End: quantity.Instant(0).Add(z.floor.Longest(&s.floor))}
			if _, r := atomizer.Fit(&v, w); r.Why == atomizer.Interested {
				return ""
			}
		}
	}
	return fmt.Sprintf("it outgrew every slice: after %s no slice safely runs a useful piece from %s %d on; the largest has %d MiB", job.MemoryKilled, unitName(s.Spec), free.From, most>>20)
}

// tooSlow: by the fastest run observed, not even the least useful piece fits the longest window there can be.
func (z *Zone) tooSlow(s *state) string {
	if s.Spec.Kind == job.Rigid || len(s.learned().Rates) == 0 || len(z.floor.Slices()) == 0 {
		return ""
	}
	v, fastest := s.view(), int64(0)
	for _, c := range z.floor.Classes() {
		if c.Slices() > 0 {
			fastest = max(fastest, c.SpeedOf(s.Spec))
		}
	}
	if fastest == 0 {
		return ""
	}
	v.Hopeful = true
	if need, longest := atomizer.LeastWindow(&v, fastest), z.floor.Longest(&s.floor); need > longest {
		return fmt.Sprintf("a %s takes %v at best: the least useful piece needs a window of %v, the longest is %v; a smaller grid would help",
			unitName(s.Spec), slices.Min(s.learned().Rates).Round(time.Microsecond), need.Round(time.Millisecond), longest)
	}
	return ""
}

// largest is the memory of the largest slice that a job can run on; of the smallest of them, where it needs several of one
// node.
func (z *Zone) largest(spec *job.Spec) (most quantity.Amount) {
	if spec.Slices <= 1 {
		for _, c := range z.floor.Classes() {
			if c.Slices() > 0 && c.SpeedOf(spec) > 0 {
				most = max(most, c.Capacity[trp.Memory])
			}
		}
		return most
	}
	for _, node := range z.planner.Nodes() {
		left := spec.Slices
		for _, sl := range slices.Backward(node) {
			if sl.Class().SpeedOf(spec) > 0 {
				left--
			}
			if left == 0 {
				most = max(most, sl.Class().Capacity[trp.Memory])
				break
			}
		}
	}
	return most
}

func unitName(s *job.Spec) string {
	if s.Unit == "" {
		return "unit"
	}
	return s.Unit
}

func first(s job.Ranges, n int) job.Ranges { return s[:min(n, len(s))] }

// length of a range of time as a duration, for learning.
func ran(r *job.Result) time.Duration { return max(0, r.Ran()) }
