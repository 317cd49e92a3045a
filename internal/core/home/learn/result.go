package learn

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Slices are what is known of them.
type Slices interface {
	// Memory that a slice has, 0 if nobody offers it; Largest is that of the largest slice that a job can run on, of the smallest of them
	// where it needs several of one node.
	Memory(id job.SliceID) quantity.Amount
	Largest(spec *job.Spec) quantity.Amount
}

const (
	// quantilePermille of the observed run times is what plans use (T of adr 0005: default .95).
	quantilePermille = 950
	// leastMargin stays on a learned run time, startMargin stands on a declared one; both in parts per thousand.
	leastMargin, startMargin, mostMargin = 1050, 1250, 100_000
	// leastSample is the shortest run that teaches a run time once one is known.
	leastSample = 500 * time.Millisecond
	// leastMeasured is what the piece that measures is taken to have run at least.
	leastMeasured = time.Millisecond
	// outsizedPermille of the units of the largest piece so far make the rates of those before forgotten.
	outsizedPermille = 1250
)

// Result folds one result into what is known of the job. skip says that the claim was a single unit which keeps failing
// alone and is given up.
//
// Ends without progress are counted in waves: a subjob that was asked for before the last one was counted ran beside it, without what was
// learned from that. docs/job.md says which end counts on which side.
func Result(
	now quantity.Instant, spec *job.Spec, known *protocol.Learned, c *protocol.Claim, r *job.Result, done job.Range, on Slices,
) (l protocol.Learned, skip bool) {
	l = *known
	l.Rates, l.Suspects = slices.Clone(l.Rates), slices.Clone(l.Suspects)
	learnPrepare(&l, r)
	learnBusy(&l, r)
	l.Peak = l.Peak.Max(r.Peak)
	l.Margin = cmp.Or(l.Margin, startMargin)
	l.MemoryScale = cmp.Or(l.MemoryScale, trp.Unscaled)
	wave := WaveOf(now, c, &l)
	blame := func(detail string) {
		if busy := r.Machine(); busy != "" {
			detail += "; " + busy
		}
		if starved(spec, c, r) && l.Kills < mostStarved {
			wave.Kill(detail)
		} else {
			wave.Fail(detail)
		}
	}
	if !done.Empty() {
		l.Failures, l.Kills, l.LastDetail = 0, 0, ""
		learnRate(&l, spec, c, r, done)
		l.Suspects = passed(l.Suspects, done, int64(spec.Parallelism))
	}
	if outran(spec, known, c, r, done) {
		l.Trials, l.LastDetail = l.Trials+1, "it had completed nothing when the time that it was given to be measured was over"
		return l, false
	}
	switch r.Outcome {
	case job.MemoryKilled:
		raiseMemory(&l, spec, c, r, on.Memory(c.Slice), on.Largest(spec))
	case job.DeadlineKilled:
		if !done.Empty() || wave.first() {
			missed(&l, done)
		}
		if done.Empty() {
			blame("it was still running at its deadline and had completed nothing")
		}
	case job.Stopped:
	case job.NodeFailed:
		if done.Empty() && r.Start != 0 { // one that never began: backoff.NodeFailed
			wave.Kill(r.Detail)
		}
	case job.Lost:
		if done.Empty() {
			wave.Fail(r.Detail)
		}
	case job.ExitFailed, job.LimitKilled:
		l.LastDetail = r.Detail
		switch {
		case spec.Kind == job.Items && !(r.Outcome == job.ExitFailed && r.Signal == sigkill):
			where, bad := job.Range{From: done.To, To: c.Range.To}, false
			if l.Suspects, bad = failed(l.Suspects, where, int64(spec.Parallelism)); bad && spec.OnBadItem == job.BadItemSkips {
				skip = true
			} else if bad {
				l.Suspects = append(l.Suspects, protocol.Suspect{Range: where, Limit: -1})
			}
		case done.Empty():
			wave.Fail(r.Detail)
		}
	case job.StartFailed, job.Yielded, job.Done:
		switch {
		case !done.Empty():
		case r.Outcome == job.Yielded:
			if wave.first() { // its time was too short for it to begin: the next piece gets more
				missed(&l, done)
			}
			blame(cmp.Or(r.Detail, "it yielded without having completed anything"))
		default:
			wave.Fail(r.Detail)
		}
	}
	return l, skip
}

// outran says that a piece that measures (atomizer.View.Measures) used all of its time and completed nothing. How long that was is Sluice's
// guess, so it is nobody's failure, and the next piece gets more. But it counts where the piece had the longest window there is, which is
// less than the guess (atomizer.View.Hopeful): no window will be longer.
func outran(spec *job.Spec, known *protocol.Learned, c *protocol.Claim, r *job.Result, done job.Range) bool {
	return known.Measures(spec) && done.Empty() && c.Plan.Run >= atomizer.Trial(spec, known, c.Speed) &&
		(r.Outcome == job.DeadlineKilled || r.Outcome == job.Yielded && r.End >= asked(spec, c))
}

// asked is when a subjob is told at the latest that its time is over.
func asked(spec *job.Spec, c *protocol.Claim) quantity.Instant {
	return c.End.Add(-max(spec.Launch.Grace, spec.Launch.WarnBefore))
}

// sigkill that Sluice did not send says nothing about the item that was being processed: it may have come at any time. So no item is
// suspected for it, and none is skipped.
const sigkill = 9

// Wave counts ends without progress on one of two sides: the job's failures, and ends from outside. A subjob that was asked for before the
// last end of a side was counted ran beside it, and belongs to the same wave: newFailure and newKill are false for it.
type Wave struct {
	l                   *protocol.Learned
	now                 quantity.Instant
	newFailure, newKill bool
}

// WaveOf is the wave that the end of a claim belongs to.
func WaveOf(now quantity.Instant, c *protocol.Claim, l *protocol.Learned) Wave {
	return Wave{l: l, now: now, newFailure: l.FailedAt == 0 || c.Asked > l.FailedAt, newKill: l.KilledAt == 0 || c.Asked > l.KilledAt}
}

// first says that no end of this wave was counted yet, on either side.
func (w *Wave) first() bool { return w.newFailure && w.newKill }

// Fail counts it as the job's failure.
func (w *Wave) Fail(detail string) {
	w.l.LastDetail = detail
	if w.newFailure {
		w.l.Failures, w.l.FailedAt = w.l.Failures+1, w.now
	}
}

// Kill counts it as ended from outside.
func (w *Wave) Kill(detail string) {
	w.l.LastDetail = detail
	if w.newKill {
		w.l.Kills, w.l.KilledAt = w.l.Kills+1, w.now
	}
}

// mostBusy bounds what plans add: ten times as much.
const mostBusy = 900

// learnBusy records the share of its run for which a subjob waited for a processor: more counts at once, since a piece that is planned too
// short is cut, and less by half.
func learnBusy(l *protocol.Learned, r *job.Result) {
	if ran := r.Ran(); ran <= 0 || ran < leastSample && l.Busy > 0 {
		return
	}
	busy := min(mostBusy, r.Busy())
	l.Busy = max(busy, (l.Busy+busy)/2)
}

// mostStarved is how often in a row a subjob may be starved of processors until that counts as its failure: no machine's load keeps a job
// going for ever.
const mostStarved = 10

// starved says that a subjob ended without progress rather for want of a processor than by its own doing: it counts as ended from outside.
// A walltime is the owner's word, and counts whatever the machine did; and who gives up before it was asked to has not run out of time.
func starved(spec *job.Spec, c *protocol.Claim, r *job.Result) bool {
	return spec.Kind != job.Rigid && r.Busy() >= 500 && (r.Outcome == job.DeadlineKilled || r.End >= asked(spec, c))
}

// learnRate adds the run time of one unit at speed 1, without what it waited for a processor. What restore and checkpoint were declared to
// cost is taken off, but never more than half of what was observed.
func learnRate(l *protocol.Learned, spec *job.Spec, c *protocol.Claim, r *job.Result, done job.Range) {
	whole := r.Outcome == job.Done || r.Outcome == job.Yielded || r.Outcome == job.DeadlineKilled
	work := max(0, r.Own())
	if l.Measures(spec) {
		work = max(work, (r.Ran()-max(0, r.Idle))*(1000-mostBusy)/1000, leastMeasured) // any time is better than none
	}
	well := r.Outcome == job.Done || r.Outcome == job.Yielded
	switch {
	case r.Stayed: // it paid no start
	case spec.Untimed() && r.Startup > 0:
		l.Start = r.Startup
	case spec.Untimed() && well && work > 0 && (l.Start == 0 || work < l.Start):
		l.Start = work
	}
	n := done.Len()
	outsized := spec.Untimed() && 1000*n >= outsizedPermille*l.Sampled // a better bound from above, however short it ran
	stopped := r.Tried != nil && r.Tried.Hopeless > 0 && len(l.Rates) > 0
	if spec.Kind == job.Rigid || !whole || work == 0 || work < leastSample && len(l.Rates) > 0 && !outsized || stopped {
		return // short runs tell how long a process takes to start, ended ones where they were ended, as trials that were stopped do
	}
	overhead := cmp.Or(max(0, r.Startup), spec.Startup)
	if r.Stayed {
		overhead = 0
	}
	if !c.Plan.Resume.Zero() {
		overhead += spec.Restore
	}
	if done.To < spec.Total {
		overhead += spec.Checkpoint
	}
	work -= min(overhead, work/2)
	if outsized {
		l.Rates, l.Sampled, l.Trials = nil, n, 0
	}
	l.Rates = append(l.Rates, max(1, time.Duration(quantity.MulDiv(int64(work), c.Speed, 1000*n))))
	if n := len(l.Rates); n > protocol.MaxRates {
		l.Rates = slices.Delete(l.Rates, 0, n-protocol.MaxRates)
	}
	sorted := slices.Sorted(slices.Values(l.Rates))
	l.Rate = sorted[(len(sorted)*quantilePermille+999)/1000-1]
	if r.Outcome != job.DeadlineKilled {
		l.Margin = max(leastMargin, 1000+(min(l.Margin, startMargin)-1000)*3/4)
	}
}

// missed gives the next piece more time after a deadline. Where something was completed its run time is known now and
// the margin needs little; where nothing ever was, the declared time may be wrong by any factor, and there are few tries.
func missed(l *protocol.Learned, done job.Range) {
	switch {
	case !done.Empty():
		l.Margin = min(l.Margin, startMargin) * 3 / 2
	case len(l.Rates) > 0:
		l.Margin = min(mostMargin, l.Margin*2)
	default:
		l.Margin = min(mostMargin, l.Margin*8)
	}
}
