package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// invite lists, by name, the jobs with an atomizer that answer for a window: of those whose answers do not move by
// themselves no more than the audience holds, the first of the policy, the first that is late, and those that have waited longest. Where
// bids go by the policy's index the first that is late comes to it, and the rest is returned too, in the policy's order.
func (p *plain) invite(moment, now quantity.Instant, o *offer, w *window) (asked, beyond []*Job) {
	f, c := p.f, o.slice.class
	var crowd []*Job
	for _, j := range p.live() {
		if j.Spec().External || j.Ineligible(now) != Eligible || j.Avoids(o.slice) || !o.full && j.generation <= f.seen {
			continue
		}
		if o.full && !p.unindexed(j) {
			if _, r := f.Fit(j, c, now, w.end); r.Why == atomizer.Interested {
				crowd = append(crowd, j)
			}
			continue
		}
		asked = append(asked, j)
	}
	if most := f.cfg.Market.Audience; len(crowd) > most {
		key := func(j *Job) *policy.Candidate {
			own, _, _ := j.Use(now)
			return &policy.Candidate{
				Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: own, Weight: 1, Laxity: f.laxity(j, c, 0),
				Index: f.index(j, c),
			}
		}
		slices.SortFunc(crowd, func(a, b *Job) int { return f.cfg.Policy.Compare(key(a), key(b)) })
		late := firstLate(moment, crowd)
		if f.budget.Credit() <= 0 {
			late = nil
		}
		if f.ranksBids() {
			bound := func(j *Job) int64 {
				return f.mostRate(f.index(j, c), precedence(mostPrecedence), f.fullness(now, j))
			}
			slices.SortStableFunc(crowd, func(a, b *Job) int { return cmp.Compare(bound(b), bound(a)) })
		}
		first, rest := crowd[:most:most], crowd[most:]
		if f.ranksBids() {
			for _, j := range rest {
				if j == late {
					first = append(first, j)
				} else {
					beyond = append(beyond, j)
				}
			}
			crowd = first
		} else {
			slices.SortStableFunc(crowd[most/2:], func(a, b *Job) int {
				return cmp.Or(cmp.Compare(b.Waited(now), a.Waited(now)), byName(a, b))
			})
			if i := slices.Index(crowd, late); i >= most/2 {
				crowd = slices.Insert(slices.Delete(crowd, i, i+1), most/2, late)
			}
			crowd = crowd[:most]
		}
	}
	asked = append(asked, crowd...)
	slices.SortFunc(asked, byName)
	return asked, beyond
}

// unindexed says whether a job is asked each time, whatever the audience holds: its answers are not simple.
func (p *plain) unindexed(s *Job) bool {
	f := p.f
	if s.Spec().External || s.Volatile() {
		return true
	}
	for _, c := range f.classes {
		if _, simple := f.answer(s, c); !simple {
			return true
		}
	}
	return false
}

// outbidder is a job that wants the time behind a running subjob more than that one does.
func (p *plain) outbidder(now quantity.Instant, j *Job, s *Slice, c *protocol.Claim, end quantity.Instant, piece *atomizer.Piece) *Job {
	f, at := p.f, c.End
	v := j.View()
	more := job.Range{From: c.Range.To, To: piece.Range.To}
	mine := bid{job: j, ahead: v.RunTime(c.Range.Len(), s.class.SpeedOf(j.Spec())), end: at.Add(piece.Wall), speed: c.Speed,
		Variant: protocol.Variant{
			Range: more, Start: at, Run: piece.Run, Wall: piece.Wall, Demand: piece.Demand,
			Score: score.Job{
				Progress: score.Progress(more.Len(), max(1, v.Left())), Laxity: score.Laxity(j.finish(at, s.class), j.deadline()),
				Overhead: score.One,
			}.Of(j.Spec().Worth),
		}}
	o, w := offer{slice: s, full: true}, window{start: at, end: end}
	f.value(at, &mine, &o, &w, false)
	asked, _ := p.invite(now, at, &o, &w)
	for _, other := range asked {
		if other == j || other.RestsUntil() > now {
			continue
		}
		f.bids = nil
		f.propose(at, 0, other, &o, &w, false)
		if slices.ContainsFunc(f.bids, func(t bid) bool { return t.weight > mine.weight || f.precedes(now, &t, s.class) }) {
			return other
		}
	}
	return nil
}
