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
	j := z.jobs[in.Job]
	if j == nil || j.Epoch != in.Epoch {
		z.send(out, ack)
		return
	}
	i := j.claim(in.Token)
	if i < 0 || j.work().claims[i].Generation.Number() != in.Generation.Number() {
		ack.Range = j.answered(in.Token)
		if planted.In(planted.CommitWithoutClaim) || planted.In(planted.PublishReleased) && ack.Range.Empty() {
			ack.Range = job.Range{From: in.Range.From, To: max(in.Range.From, min(in.Result.Progress, in.Range.To))}
		}
		z.send(out, ack)
		return
	}
	z.taken(j, in.Token)
	c, r := j.work().claims[i], in.Result
	if r.Start != 0 {
		z.begun(j, r.Start) // Running was lost
	}
	done := j.completed(&c, r)
	learned, skip := z.learn(now, j, &c, r, done)
	if skip {
		done = c.Range
	}
	z.observe(j, &c, r, done, &learned, out)
	z.floor.TellEnd(&entryOf(j).floor, &c, r, done, out)
	if done.Empty() {
		z.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, Result: r, At: now})
	} else {
		z.fact(out, protocol.Fact{Kind: protocol.Committed, Job: j.ID, Token: c.Token, Range: done, Result: r, Skipped: skip, At: now})
	}
	z.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Learned: &learned})
	if skip {
		done = job.Range{} // there is nothing to publish
	}
	if j.complete() {
		z.teach(j, out)
	}
	w := j.makeWork()
	w.publishAsked, w.publishTries = now, 0
	z.armPublications(j)
	ack.Range = done
	if planted.In(planted.PublishAll) {
		ack.Range = c.Range
	}
	z.send(out, ack)
	z.ail(now, j, r)
	if bad := learned.Failures + learned.Kills; bad > 0 && !j.complete() {
		z.rest(now, j, z.cfg.Backoff<<min(bad-1, 6))
	}
	z.settled(now, j, out)
}

// answered is the part of a settled subjob that was published.
func (j *Job) answered(t job.Token) job.Range {
	for i := len(j.work().past) - 1; i >= 0; i-- {
		if p := &j.work().past[i]; p.Token == t {
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
func (z *Zone) settled(now quantity.Instant, j *Job, out *protocol.Out) {
	switch {
	case j.fate().verdict.State.Final():
	case j.complete() && !j.finished():
	case j.complete():
		v := job.Verdict{State: job.Finished, Reason: "all of it is committed"}
		if n := j.work().skipped.Len(); n > 0 {
			v.Reason = fmt.Sprintf("all of it is committed but for %d bad %ss: %v", n, unitName(j.Spec), first(j.work().skipped, 5))
		}
		z.end(now, j, v, out)
	case j.fate().dropping.State != job.Waiting:
		z.end(now, j, j.fate().dropping, out)
	default:
		if why := z.hopeless(j); why != "" {
			z.end(now, j, job.Verdict{State: job.Failed, Reason: why}, out)
		}
	}
}

// hopeless says why a job can not go on, empty if it can.
func (z *Zone) hopeless(j *Job) string {
	l := j.learned()
	last := l.LastDetail
	if last != "" {
		last = ": " + last
	}
	if l.Failures >= max(1, j.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs ended without progress%s", l.Failures, last)
	}
	if l.Kills >= z.cfg.MaxKills {
		return fmt.Sprintf("%d times in a row its subjobs were ended from outside%s", l.Kills, last)
	}
	for _, bad := range l.Suspects {
		if bad.Limit < 0 {
			return fmt.Sprintf("%s %d fails whenever it runs alone%s", unitName(j.Spec), bad.Range.From, last)
		}
	}
	if bad, most := j.work().skipped.Len()-j.work().forgiven, max(16, j.Spec.Total/100); bad > most {
		return fmt.Sprintf("%d %ss were bad, more than the %d that may be skipped%s", bad, unitName(j.Spec), most, last)
	}
	if why := z.tooSlow(j); why != "" {
		return why
	}
	return z.outgrown(j)
}

// outgrown: its profile was raised after a memory kill, and now the job would be interested in no window that any slice
// there is could ever offer. Empty if it still would.
func (z *Zone) outgrown(j *Job) string {
	scale := j.learned().MemoryScale
	free := job.NextFree(0, j.Spec.Total, j.work().committed, j.work().claimed)
	if free.Empty() || scale <= trp.Unscaled || len(j.work().claims) > 0 {
		return ""
	}
	most := z.largest(j.Spec)
	if most == 0 {
		return ""
	}
	least := j.safe().LeastOver(free.From, free.From+1, scale)
	if j.Spec.Kind == job.Rigid {
		least = j.safe().LeastOver(0, j.Spec.Total, scale)
	}
	if least > most {
		where := "the largest slice has"
		if n := j.width(); n > 1 {
			where = fmt.Sprintf("no node has %d slices with more than", n)
		}
		return fmt.Sprintf("it outgrew every slice: after %s it needs about %d MiB, %s %d MiB", job.MemoryKilled, least>>20, where, most>>20)
	}
	if j.Spec.Kind == job.Rigid {
		return ""
	}
	v := j.view()
	for _, v.Hopeful = range []bool{false, true} {
		for _, c := range z.floor.Classes() {
			if c.Slices() == 0 {
				continue
			}
			w := atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), End: quantity.Instant(0).Add(z.floor.Longest(&entryOf(j).floor))}
			if _, r := atomizer.Fit(&v, w); r.Why == atomizer.Interested {
				return ""
			}
		}
	}
	return fmt.Sprintf("it outgrew every slice: after %s no slice safely runs a useful piece from %s %d on; the largest has %d MiB", job.MemoryKilled, unitName(j.Spec), free.From, most>>20)
}

// tooSlow: by the fastest run observed, not even the least useful piece fits the longest window there can be.
func (z *Zone) tooSlow(j *Job) string {
	if j.Spec.Kind == job.Rigid || len(j.learned().Rates) == 0 || len(z.floor.Slices()) == 0 {
		return ""
	}
	v, fastest := j.view(), int64(0)
	for _, c := range z.floor.Classes() {
		if c.Slices() > 0 {
			fastest = max(fastest, c.SpeedOf(j.Spec))
		}
	}
	if fastest == 0 {
		return ""
	}
	v.Hopeful = true
	if need, longest := atomizer.LeastWindow(&v, fastest), z.floor.Longest(&entryOf(j).floor); need > longest {
		return fmt.Sprintf("a %s takes %v at best: the least useful piece needs a window of %v, the longest is %v; a smaller grid would help",
			unitName(j.Spec), slices.Min(j.learned().Rates).Round(time.Microsecond), need.Round(time.Millisecond), longest)
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
