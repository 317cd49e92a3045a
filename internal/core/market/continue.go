package market

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// Displaces is the job that would get the window behind a running subjob, which ends as the claim says, rather than that the subjob goes on
// there with a piece of its job; nil if there is none.
func (f *Floor) Displaces(now quantity.Instant, j *Job, s *Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece) *Job {
	if f.plain != nil {
		return f.plain.displaces(now, j, s, c, end, p)
	}
	var other *Job
	if f.cfg.Market != nil {
		other = f.outbidder(now, j, s, c, end, p)
	} else if late := f.lateRival(now, j, s, &window{start: c.End, end: end}); late != nil {
		other = late
	} else if pick := f.rival(now, j, s, &window{start: c.End, end: end}); pick.job != nil {
		mine := f.candidate(now, j, s.class, end, p)
		if f.cfg.Policy.Compare(&pick.Candidate, &mine) < 0 {
			other = pick.job
		}
	}
	if other != nil {
		other.counts.add(Eligible, now)
	}
	return other
}

// outbidder is a job whose variant for the window behind a running subjob is worth more than that the subjob goes on, or that
// has waited too long; nil if there is none. Who rests now is in no ranking, and not looked at. Agents are not asked: what
// their jobs may be worth is seen in the round of a window that is there.
func (f *Floor) outbidder(now quantity.Instant, j *Job, s *Slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece) *Job {
	at := c.End
	more := job.Range{From: c.Range.To, To: p.Range.To}
	v := j.View()
	left := max(1, v.Left())
	mine := bid{job: j, ahead: v.RunTime(c.Range.Len(), s.class.SpeedOf(j.Spec())), end: at.Add(p.Wall), speed: c.Speed,
		Variant: protocol.Variant{
			Range: more, Start: at, Run: p.Run, Wall: p.Wall, Demand: p.Demand,
			Score: score.Job{
				Progress: score.Progress(more.Len(), left), Laxity: score.Laxity(j.finish(at, s.class), j.deadline()), Overhead: score.One,
			}.Of(j.Spec().Worth),
		}}
	o, w := offer{slice: s, full: true}, window{start: at, end: end}
	f.value(at, &mine, &o, &w, false)
	f.refreshIndex(now)
	for _, other := range f.invite(now, at, &o, &w) {
		if other == j || other.RestsUntil() > now {
			continue
		}
		f.bids = f.bids[:0]
		f.propose(at, 0, other, &o, &w, false)
		if slices.ContainsFunc(f.bids, func(t bid) bool { return t.weight > mine.weight || f.precedes(now, &t, s.class) }) {
			return other
		}
	}
	return nil
}

// Elsewhere says whether a slice stands idle, and nobody waits for it, on which the rest of a running job would end sooner,
// the stop and the restore paid. Such a job is not to go on where it is: when it ends it bids there. What stands idle is what
// the last sale left: a window that begins at this instant is offered to those who wait first.
func (f *Floor) Elsewhere(now quantity.Instant, waiting int, j *Job, c *protocol.Claim) bool {
	if f.plain != nil {
		return f.plain.elsewhere(now, waiting, j, c)
	}
	if !f.Uncontended(waiting) {
		return false
	}
	for i := f.open.Next(0); i >= 0; i = f.open.Next(i + 1) {
		s := f.slices[i]
		for k := range s.windows {
			if f.sooner(now, j, c, s, &s.windows[k]) {
				return true
			}
		}
	}
	return false
}

// sooner says whether what is left of a job behind a claim would end sooner in a window that has begun than where it runs.
func (f *Floor) sooner(now quantity.Instant, j *Job, c *protocol.Claim, s *Slice, w *window) bool {
	speed, v := s.class.SpeedOf(j.Spec()), j.View()
	left := j.Spec().Total - c.Range.To
	if w.start > now || speed <= c.Speed || v.RunTime(left, speed)+v.Prepare()+j.Spec().Startup+j.Spec().Restore+
		j.Spec().Checkpoint >= v.RunTime(left, c.Speed) {
		return false
	}
	v.Committed, v.Claimed, v.Running = slices.Clone(v.Committed).Add(c.Range), nil, 0
	_, r := atomizer.Fit(&v, f.Window(j, s.class, now, w.end))
	return r.Why == atomizer.Interested
}

// lateRival is the late job that would be given a window that is yet to begin before others; nil if there is none.
func (f *Floor) lateRival(now quantity.Instant, j *Job, s *Slice, w *window) *Job {
	if f.budget.Credit() <= 0 {
		return nil
	}
	other, _ := f.entitled(now, f.firstLateFor(now, s, w), j, s.class, w)
	return other
}

// rival is the job that the policy would ask first for a window that is yet to begin, j apart; without a job if there is none. Agents
// are not asked.
func (f *Floor) rival(now quantity.Instant, j *Job, s *Slice, w *window) *candidate {
	c := s.class
	f.refreshIndex(now)
	pick := f.pick.none()
	f.best(now, c, w, j, pick)
	for _, other := range f.unindexed {
		if other == j || other.Spec().External || other.Ineligible(now) != Eligible || other.Avoids(s) {
			continue
		}
		if p, r := f.Fit(other, c, max(w.start, now), w.end); r.Why == atomizer.Interested {
			f.consider(now, other, c, w.end, &p, pick)
		}
	}
	return pick
}
