package market

import (
	"iter"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// candidate is an interested job in a round; job is nil if there is none.
type candidate struct {
	policy.Candidate
	job *Job
}

// none empties the candidate that is picked.
func (c *candidate) none() *candidate {
	*c = candidate{}
	return c
}

// ask offers one window: signals of interest from every waiting job, an order by policy, and only then the piece. A
// window that was announced before is offered only to the jobs that have changed since: between changes nobody becomes
// eligible, since the window only shrinks. Whoever is first in order is asked for its piece, and may decline; then the next is. Where
// agents have signalled (t) all who signal are in one order with them.
func (f *Floor) ask(now quantity.Instant, s *Slice, w *window, t *turn, out *protocol.Out) {
	if f.plain != nil {
		f.plain.ask(now, s, w, t, out)
		return
	}
	f.refreshIndex(now)
	f.nextRound++
	length, full := w.length(now), !w.offered
	pick := f.pick.none()
	list := f.fresh.List()
	if full || t != nil {
		list = f.unindexed
		f.best(now, s.class, w, nil, pick)
	}
	for _, j := range list {
		if !full && t == nil && j.generation <= w.heard {
			j.bids = false
			continue
		}
		if full || t == nil {
			f.offer(now, j, s, w, length, pick)
		} else {
			f.reconsider(now, j, nil, s, w, pick) // it has counted this window when it was announced
		}
	}
	f.considerSignals(now, s, w, t, nil, pick)
	var p atomizer.Piece
	for pick.job != nil && !pick.job.Spec().External {
		// The first in order, and nobody else, cuts its piece now, with its progress as it is now.
		var refusal atomizer.Refusal
		if p, refusal = f.carve(pick.job, s, now, w.end); refusal.Why == atomizer.Interested {
			break
		}
		f.decline(now, pick.job, refusal, "")
		f.refreshIndex(now) // who has declined rests, and is in no order
		f.firstOf(now, s, w, full, t, nil, f.pick.none())
	}
	j := pick.job
	late, cost := f.lateFor(now, j, s, w, list, full || t != nil)
	if late != nil {
		j = late
		p, _ = f.Fit(j, s.class, now, w.end)
	}
	if full {
		if j != nil && j.indexed {
			f.count(j) // the winner has not lost this round
		}
		f.remember(s.class.at, length, now)
		if j != nil && j.indexed {
			f.discount(j)
		}
	}
	w.offered = true
	if t != nil {
		w.heard = f.generation
	}
	if j == nil {
		return
	}
	if full || t == nil {
		for _, other := range list {
			if other != j && other.bids {
				other.counts.add(LostToPolicy, now)
			}
		}
	}
	if j.Spec().External {
		f.askAgent(now, s, w, t, pick, out)
		return
	}
	end := now.Add(p.Length)
	if p.Length == time.Duration(math.MaxInt64) || j.Spec().Kind == job.Rigid && j.Spec().Walltime == 0 {
		end = quantity.Never
	}
	f.budget.Spend(cost)
	f.give(now, j, s, w, Piece{Piece: p, Start: now, End: end, Speed: s.class.SpeedOf(j.Spec()), Window: w.id, Round: f.nextRound,
		Late: cost}, out)
	f.tellLosers(now, t, w, j, out)
}

// give asks the slice's node for a piece that a job has cut of a window.
func (f *Floor) give(now quantity.Instant, j *Job, s *Slice, w *window, p Piece, out *protocol.Out) {
	length := w.length(now)
	f.accepts(j)
	f.sale.Ask(now, j, s, p, out)
	queue, _ := j.Queue()
	s.class.give(given{slice: s, length: length, at: now, to: rival{job: j.Name(), queue: queue}})
	w.offered, w.won = false, true // what is left of it is announced again
}

// firstOf finds the first in order of those who signal for a window, but for one that is not meant: nothing is counted.
func (f *Floor) firstOf(now quantity.Instant, s *Slice, w *window, full bool, t *turn, but *Job, pick *candidate) {
	if f.plain != nil {
		f.plain.firstOf(now, s, w, full, t, but, pick)
		return
	}
	list := f.fresh.List()
	if full || t != nil {
		list = f.unindexed
		f.best(now, s.class, w, but, pick)
	}
	for _, j := range list {
		if full || t != nil || j.generation > w.heard {
			f.reconsider(now, j, but, s, w, pick)
		}
	}
	f.considerSignals(now, s, w, t, but, pick)
}

// reconsider has a job signal that has been counted.
func (f *Floor) reconsider(now quantity.Instant, j, but *Job, s *Slice, w *window, pick *candidate) {
	if j == but || j.active == 0 || j.Spec().External || j.Ineligible(now) != Eligible || j.Avoids(s) {
		return
	}
	if p, refusal := f.Fit(j, s.class, now, w.end); refusal.Why == atomizer.Interested {
		f.consider(now, j, s.class, w.end, &p, pick)
	}
}

// best finds the indexed job, but for one that is not meant, that the policy asks first for a window of a class.
func (f *Floor) best(now quantity.Instant, c *Class, w *window, but *Job, pick *candidate) {
	kept, length := f.cfg.Policy.Motion().Kept(), w.length(now)
	for _, g := range f.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		r := &g.rankings[c.at]
		if kept {
			if j := f.foremost(now, c, r.Within(length), but); j != nil {
				f.consider(now, j, c, w.end, &atomizer.Piece{}, pick)
			}
			continue
		}
		for j := range r.Within(length) {
			if j == but {
				continue
			}
			p, _ := f.Fit(j, c, max(w.start, now), w.end)
			f.consider(now, j, c, w.end, &p, pick)
		}
	}
}

// foremost is the one that the policy asks first of some jobs, which come in the order of their keys. The key of one that moves may
// lag behind what it has attained, and so it may come too early, never too late: those that do are given their places.
func (f *Floor) foremost(now quantity.Instant, c *Class, jobs iter.Seq[*Job], but *Job) (best *Job) {
	var least policy.Candidate
	moved := f.moved[:0]
	for j := range jobs {
		if j == but {
			continue
		}
		key := j.keyOn(c)
		if best != nil && f.cfg.Policy.Compare(&least, &key) < 0 {
			break
		}
		if j.moves && f.behind(now, j, &key) {
			moved = append(moved, j)
		}
		if best == nil || f.cfg.Policy.Compare(&key, &least) < 0 {
			best, least = j, key
		}
	}
	f.rerank(now, moved)
	clear(moved)
	f.moved = moved[:0]
	return best
}

// behind brings the key of a job that moves up to what it has attained by now, and says whether the policy gives it another place for that.
func (f *Floor) behind(now quantity.Instant, j *Job, key *policy.Candidate) bool {
	own, _, _ := j.Use(now)
	f.pair[0], f.pair[1] = *key, *key
	f.pair[1].Attained = max(own, key.Attained)
	*key = f.pair[1]
	return f.cfg.Policy.Compare(&f.pair[0], &f.pair[1]) != 0
}

// offer asks one job and counts why it is not interested. bids says whether it is.
func (f *Floor) offer(now quantity.Instant, j *Job, s *Slice, w *window, length time.Duration, pick *candidate) {
	c := s.class
	j.bids = false
	if j.active == 0 {
		return
	}
	if j.Spec().External { // its agent answers for it
		if !j.Attended() {
			j.counts.add(Unattended, now)
		}
		return
	}
	var p atomizer.Piece
	needsPiece := true
	if j.indexed {
		if j.ineligible != Eligible || j.answers[c.at].need > length {
			j.countIn(c.at, length, now)
			return
		}
		needsPiece = !f.cfg.Policy.Motion().Kept()
	} else if why := j.Ineligible(now); why != Eligible {
		j.counts.add(why, now)
		return
	} else if j.Avoids(s) {
		j.counts.add(TurnedDown, now)
		return
	}
	if needsPiece {
		var refusal atomizer.Refusal
		if p, refusal = f.Fit(j, c, now, w.end); refusal.Why != atomizer.Interested {
			j.counts.refusal(refusal, now)
			return
		}
	}
	j.bids = true
	f.consider(now, j, c, w.end, &p, pick)
}

// consider keeps the job if the policy asks it before the one that was kept.
func (f *Floor) consider(now quantity.Instant, j *Job, c *Class, end quantity.Instant, p *atomizer.Piece, pick *candidate) {
	f.next = candidate{f.candidate(now, j, c, end, p), j}
	if pick.job == nil || f.cfg.Policy.Compare(&f.next.Candidate, &pick.Candidate) < 0 {
		*pick = f.next
	}
}

// candidate is what the policy sees of a job that could use [now, end) of a slice of a class.
func (f *Floor) candidate(now quantity.Instant, j *Job, c *Class, end quantity.Instant, p *atomizer.Piece) policy.Candidate {
	own, queue, weight := j.Use(now)
	window := f.Window(j, c, now, end)
	return policy.Candidate{
		Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: own, QueueAttained: queue,
		Weight: weight, Laxity: f.laxity(j, c, now), Index: f.index(j, c),
		Used:    policy.MiB(p.Demand) * p.Wall.Milliseconds(),
		Offered: policy.MiB(c.Capacity) * max(1, window.End.Sub(window.Start).Milliseconds()),
	}
}

// laxity is the time to the owner's deadline less the run time still needed on a class; the longest time without one.
func (f *Floor) laxity(j *Job, c *Class, now quantity.Instant) time.Duration {
	d, speed := j.deadline(), c.SpeedOf(j.Spec())
	switch {
	case d == quantity.Never || speed == 0:
		return time.Duration(math.MaxInt64)
	case j.Spec().Kind == job.Rigid:
		return d.Sub(now) - j.Spec().WalltimeAt(speed)
	}
	v := j.View()
	return d.Sub(now) - v.RunTime(j.Spec().Total-v.Committed.Len(), speed)
}

// finish is when a job would end if it went on without a pause on slices of a class, from now on.
func (j *Job) finish(now quantity.Instant, c *Class) quantity.Instant {
	speed := c.SpeedOf(j.Spec())
	switch {
	case speed == 0:
		return quantity.Never
	case j.Spec().Kind == job.Rigid:
		return now.Add(j.Spec().WalltimeAt(speed))
	}
	v := j.View()
	return now.Add(v.RunTime(j.Spec().Total-v.Committed.Len(), speed))
}
