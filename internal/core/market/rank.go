package market

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Rank is a job's place in the policy's order on the kind of slice that it could have used last, or could use first.
func (f *Floor) Rank(now quantity.Instant, j *Job) status.Rank {
	var r status.Rank
	s, latest := f.missed(now, j)
	if s == nil {
		return r
	}
	own, ok := f.contends(now, j, s.class)
	if !ok {
		return r
	}
	count := f.heldAgainst
	if m := f.cfg.Policy.Motion(); len(f.jobs) > mostRanked && m.Kept() {
		count = f.placed
	}
	ahead, of, about := count(now, j, s.class, &own)
	return status.Rank{
		Place: ahead + 1, Of: of + 1, About: about,
		Policy: f.cfg.Policy.Name(), Profile: s.class.Label(), Slice: s.Name(), Latest: latest,
	}
}

// mostRanked is how many jobs are held one by one against one that asks for its rank.
const mostRanked = 1024

// heldAgainst counts the other jobs that contend for slices of a class, and those of them that are asked before j.
func (f *Floor) heldAgainst(now quantity.Instant, j *Job, c *Class, own *policy.Candidate) (ahead, of int, about bool) {
	return f.heldAgainstThese(now, j, c, own, f.jobs)
}

// heldAgainstThese counts those of a list. Of too many a sample is held against j, spread over all of them, and stands for the others:
// about.
func (f *Floor) heldAgainstThese(now quantity.Instant, j *Job, c *Class, own *policy.Candidate, list []*Job) (ahead, of int, about bool) {
	n := len(list)
	for i := range sample(n, mostRanked) {
		o := list[i]
		if o == j {
			continue
		}
		if other, ok := f.contends(now, o, c); ok {
			of++
			if f.cfg.Policy.Compare(&other, own) < 0 {
				ahead++
			}
		}
	}
	if n <= mostRanked {
		return ahead, of, false
	}
	whole := func(part int) int { return int(quantity.MulDiv(int64(part), int64(n), mostRanked)) }
	return whole(ahead), whole(of), true
}

// placed is the same by the rankings, where the policy's order within them stands still: in each of them those before j come first.
// Jobs that changed since the last step stand where they stood then.
func (f *Floor) placed(now quantity.Instant, j *Job, c *Class, own *policy.Candidate) (ahead, of int, about bool) {
	ahead, of, about = f.heldAgainstThese(now, j, c, own, f.unindexed)
	for _, g := range f.groups {
		if c.at < len(g.rankings) {
			before, all := g.rankings[c.at].Ahead(func(o *Job) bool {
				other := f.candidate(now, o, c, now.Add(f.cfg.Horizon), &atomizer.Piece{})
				return f.cfg.Policy.Compare(&other, own) < 0
			})
			ahead, of = ahead+before, of+all
		}
	}
	if j.ranked {
		of-- // itself
	}
	return ahead, of, about
}

// missed is the latest window that a job could have used and another got, with its slice; if there is none a slice that it could use.
func (f *Floor) missed(now quantity.Instant, j *Job) (at *Slice, latest status.Given) {
	since := j.since()
	contends := make([]bool, len(f.classes))
	for i, c := range f.classes {
		_, contends[i] = f.contends(now, j, c)
	}
	for _, c := range f.classes {
		for i := range c.given {
			g := &c.given[i]
			if g.slice == nil || !g.slice.Usable() || g.slice.class != c || g.to.job == j.Name() || g.at < since || g.at <= latest.At {
				continue
			}
			if _, refusal := f.Fit(j, c, now, now.Add(g.length)); refusal.Why == atomizer.Interested {
				at, latest = g.slice, status.Given{Slice: g.slice.Name(), Length: g.length, At: g.at, Winner: g.to.job,
					WinnerQueue: g.to.queue}
			}
		}
	}
	if at != nil {
		return at, latest
	}
	if i := slices.IndexFunc(f.slices, func(s *Slice) bool { return s.Usable() && contends[s.class.at] }); i >= 0 {
		at = f.slices[i]
	}
	return at, latest
}

// contends is what the policy sees of a job that waits for slices of a class.
func (f *Floor) contends(now quantity.Instant, j *Job, c *Class) (policy.Candidate, bool) {
	if j.Ineligible(now) != Eligible {
		return policy.Candidate{}, false
	}
	end := now.Add(f.cfg.Horizon)
	if j.Spec().Kind == job.Rigid {
		end = quantity.Never
	}
	p, refusal := f.Fit(j, c, now, end)
	if refusal.Why != atomizer.Interested {
		return policy.Candidate{}, false
	}
	return f.candidate(now, j, c, end, &p), true
}
