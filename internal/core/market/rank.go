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
	n, ahead, of := len(f.jobs), 0, 0
	for i := range sample(n, mostRanked) {
		o := f.jobs[i]
		if o == j {
			continue
		}
		if c, ok := f.contends(now, o, s.class); ok {
			of++
			if f.cfg.Policy.Compare(&c, &own) < 0 {
				ahead++
			}
		}
	}
	whole := func(part int) int { return int(quantity.MulDiv(int64(part), int64(n), int64(min(n, mostRanked)))) }
	return status.Rank{
		Place: whole(ahead) + 1, Of: whole(of) + 1, About: n > mostRanked,
		Policy: f.cfg.Policy.Name(), Profile: s.class.Label(), Slice: s.Name(), Latest: latest,
	}
}

// mostRanked is how many jobs are held against one that asks for its rank. Of more, a sample that is spread over all of them is,
// and stands for the others.
const mostRanked = 1024

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
				at, latest = g.slice, status.Given{Slice: g.slice.Name(), Length: g.length, At: g.at, Winner: g.to.job, WinnerQueue: g.to.queue}
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
