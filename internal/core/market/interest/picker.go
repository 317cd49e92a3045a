package interest

import (
	"iter"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// candidate is an interested job in a round; job is nil if there is none.
type candidate struct {
	policy.Candidate
	job *index.Job
}

// picker finds the first in the policy's order among the jobs interested in a window. Invariant: it finds the one that comparing all of
// them finds.
type picker struct {
	policy policy.Policy
	est    *index.Estimator
	index  *index.Index
	relay  *agents.Relay
	// pick and next are the best candidate of those looked at, and the one that is compared with it: room that is not allocated.
	pick, next candidate
	// moved is room for jobs that get other places in the rankings.
	moved []*index.Job
}

// noPick empties the room for the best candidate and returns it, to be filled by best, signal and reconsider.
func (p *picker) noPick() *candidate {
	p.pick = candidate{}
	return &p.pick
}

// consider keeps the job if the policy asks it before the one that was kept.
func (p *picker) consider(now quantity.Instant, j *index.Job, c *window.Class, end quantity.Instant, piece *atomizer.Piece,
	pick *candidate) {
	p.next = candidate{p.est.Candidate(now, j, c, end, piece), j}
	if pick.job == nil || p.policy.Compare(&p.next.Candidate, &pick.Candidate) < 0 {
		*pick = p.next
	}
}

// best finds the indexed job, but for one that is not meant, that the policy asks first for a window of a class.
func (p *picker) best(now quantity.Instant, c *window.Class, w *window.Window, but *index.Job, pick *candidate) {
	kept, length := p.policy.Motion().Kept(), w.Length(now)
	for _, g := range p.index.Groups() {
		r := g.On(c.At())
		if r == nil {
			continue
		}
		if kept {
			if j := p.foremost(now, c, r.Within(length), but); j != nil {
				p.consider(now, j, c, w.End(), &atomizer.Piece{}, pick)
			}
			continue
		}
		for j := range r.Within(length) {
			if j == but {
				continue
			}
			piece, _ := p.est.Fit(j, c, max(w.Start(), now), w.End())
			p.consider(now, j, c, w.End(), &piece, pick)
		}
	}
}

// foremost is the one that the policy asks first of some jobs, which come in the order of their keys. The key of one that moves may
// lag behind what it has attained, and so it may come too early, never too late: those that do are given their places.
func (p *picker) foremost(now quantity.Instant, c *window.Class, jobs iter.Seq[*index.Job], but *index.Job) (best *index.Job) {
	var least policy.Candidate
	moved := p.moved[:0]
	for j := range jobs {
		if j == but {
			continue
		}
		key := j.Entry().KeyOn(c.At())
		if best != nil && p.policy.Compare(&least, &key) < 0 {
			break
		}
		if j.Entry().Moves() && p.index.CatchUp(now, j, &key) {
			moved = append(moved, j)
		}
		if best == nil || p.policy.Compare(&key, &least) < 0 {
			best, least = j, key
		}
	}
	p.index.Rerank(now, moved)
	clear(moved)
	p.moved = moved[:0]
	return best
}

// signal asks one job and counts why it is not interested. interested says whether it is.
func (p *picker) signal(now quantity.Instant, j *index.Job, s *window.Slice, w *window.Window, length time.Duration, pick *candidate) {
	c, interested, e := s.Class(), &recordOf(j).interested, j.Entry()
	*interested = false
	if !j.Active() {
		return
	}
	if j.Spec().External { // its agent answers for it
		if !p.relay.Attended(j) {
			j.Counts().Add(explain.Unattended, now)
		}
		return
	}
	var piece atomizer.Piece
	needsPiece := true
	if e.Indexed() {
		if !e.Uses(c.At(), length) {
			j.CountIn(c.At(), length, now)
			return
		}
		needsPiece = !p.policy.Motion().Kept()
	} else if why := j.Ineligible(now); why != explain.Eligible {
		j.Counts().Add(why, now)
		return
	} else if j.Avoids(s) {
		j.Counts().Add(explain.TurnedDown, now)
		return
	}
	if needsPiece {
		var refusal atomizer.Refusal
		if piece, refusal = p.est.Fit(j, c, now, w.End()); refusal.Why != atomizer.Interested {
			j.Counts().Refuse(refusal, now)
			return
		}
	}
	*interested = true
	p.consider(now, j, c, w.End(), &piece, pick)
}

// reconsider has a job signal that has been counted.
func (p *picker) reconsider(now quantity.Instant, j, but *index.Job, s *window.Slice, w *window.Window, pick *candidate) {
	if j == but || !j.Active() || j.Spec().External || j.Ineligible(now) != explain.Eligible || j.Avoids(s) {
		return
	}
	if piece, refusal := p.est.Fit(j, s.Class(), max(w.Start(), now), w.End()); refusal.Why == atomizer.Interested {
		p.consider(now, j, s.Class(), w.End(), &piece, pick)
	}
}

// behind finds the job that the policy would ask first for a window that is yet to begin, j apart; without a job if there is none. Agents
// are not asked.
func (p *picker) behind(now quantity.Instant, j *index.Job, s *window.Slice, w *window.Window) *candidate {
	p.index.Refresh(now)
	pick := p.noPick()
	p.best(now, s.Class(), w, j, pick)
	for _, other := range p.index.Unindexed() {
		p.reconsider(now, other, j, s, w, pick)
	}
	return pick
}
