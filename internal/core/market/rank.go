package market

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// mostRanked is how many jobs are held one by one against one that asks for its rank.
const mostRanked = 1024

// Rank is a job's place in the policy's order on the kind of slice that it could have used last, or could use first.
func (f *Floor) Rank(now quantity.Instant, j *index.Job) status.Rank {
	s, latest := f.mechanism.Missed(now, j)
	if s == nil {
		contends := make([]bool, len(f.board.Classes()))
		for i, c := range f.board.Classes() {
			_, contends[i] = f.est.Contends(now, j, c)
		}
		i := slices.IndexFunc(f.board.Slices(), func(s *window.Slice) bool { return s.Usable() && contends[s.Class().At()] })
		if i < 0 {
			return status.Rank{}
		}
		s = f.board.Slices()[i]
	}
	own, ok := f.est.Contends(now, j, s.Class())
	if !ok {
		return status.Rank{}
	}
	r := ranker{now: now, job: j, class: s.Class(), own: &own, est: f.est}
	if p := f.est.Policy(); len(f.index.Jobs()) > mostRanked && p.Motion().Kept() {
		r.byRankings(f.index)
	} else {
		r.byOne(f.index.Jobs())
	}
	return status.Rank{
		Place: r.ahead + 1, Of: r.of + 1, About: r.about,
		Policy: f.est.Policy().Name(), Profile: s.Class().Label(), Slice: s.Name(), Latest: latest,
	}
}

// ranker counts the other jobs that contend for slices of a class, and those of them that are asked before one.
type ranker struct {
	now   quantity.Instant
	job   *index.Job
	class *window.Class
	own   *policy.Candidate
	est   *index.Estimator

	ahead, of int
	about     bool
}

// byOne counts the jobs of a list that come before the job. Of too many only a sample, spread over all of them, is compared and scaled up:
// about.
func (r *ranker) byOne(list []*index.Job) {
	n := len(list)
	for i := range explain.Sample(n, mostRanked) {
		o := list[i]
		if o == r.job {
			continue
		}
		if other, ok := r.est.Contends(r.now, o, r.class); ok {
			r.of++
			if r.est.Policy().Compare(&other, r.own) < 0 {
				r.ahead++
			}
		}
	}
	if n > mostRanked {
		whole := func(part int) int { return int(quantity.MulDiv(int64(part), int64(n), mostRanked)) }
		r.ahead, r.of, r.about = whole(r.ahead), whole(r.of), true
	}
}

// byRankings is the same where the policy's order within the rankings is fixed: in each of them those before the job come first. Jobs that
// changed since the last step count at their old places.
func (r *ranker) byRankings(x *index.Index) {
	r.byOne(x.Unindexed())
	for _, g := range x.Groups() {
		if list := g.On(r.class.At()); list != nil {
			before, all := list.Ahead(func(o *index.Job) bool {
				other := r.est.Candidate(r.now, o, r.class, r.now.Add(r.est.Horizon()), &atomizer.Piece{})
				return r.est.Policy().Compare(&other, r.own) < 0
			})
			r.ahead, r.of = r.ahead+before, r.of+all
		}
	}
	if r.job.Entry().Ranked() {
		r.of-- // itself
	}
}
