package auction

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// audience chooses which jobs are asked for a window. Invariant: no more jobs of the index are asked than Config.Audience, except the first
// that is late and, where bids go by the policy's index, those that could bid more than all that were asked.
type audience struct {
	appraiser
	purses *purses
	index  *index.Index
	late   *lateness.Allowance
	// byIndex: the rankings are in the order of what jobs could bid at most, since bids go by the policy's index. Then each queue has
	// its own, since its purse counts in all of its bids.
	byIndex bool
	// invitation counts the audiences that were chosen.
	invitation uint64
	// invited are the jobs to ask; heads are the first of each queue that are not, where bids go by the index.
	invited []*index.Job
	heads   []head
	// held and moved are room for jobs whose places in the rankings lag behind.
	held  []lagging
	moved []*index.Job
}

// lagging is a job that comes too early in the rankings, with its present key.
type lagging struct {
	policy.Candidate
	job *index.Job
}

// head is the first job of a queue's ranking that was not looked at yet, with the fullness of the queue's purse. bound is the most that it,
// or any behind it, could bid for a millisecond.
type head struct {
	job             *index.Job
	list            *ranking.List[*index.Job]
	cursor          ranking.Cursor
	fullness, bound int64
}

// ByIndex reports whether bids go by the policy's index, under a policy that has one.
func (c *Config) ByIndex(e *index.Estimator) bool { return e.HasIndex() && c.Weights.Rates() }

// invite lists the jobs of built-in kinds that are asked for a window: all that are eligible as far as the audience goes, the
// first of the policy and the longest waiting, or those that changed if the window was offered before. The instant at which it begins may
// be one to come.
func (a *audience) invite(now, at quantity.Instant, o *agents.Offer, w *window.Window) []*index.Job {
	a.invited = a.invited[:0]
	if o.Full {
		for _, j := range a.index.Unindexed() {
			if j.Active() && !j.Spec().External {
				a.inviteOne(at, o, j)
			}
		}
		a.inviteCrowd(now, at, o.Slice.Class(), w)
	} else {
		a.inviteFresh(at, o, w)
	}
	return a.invited
}

// inviteFresh invites the eligible of those that changed.
func (a *audience) inviteFresh(now quantity.Instant, o *agents.Offer, w *window.Window) {
	class, length := o.Slice.Class().At(), w.Length(now)
	for _, j := range a.index.Fresh() {
		switch {
		case !j.Active() || j.Spec().External:
		case !j.Entry().Indexed():
			a.inviteOne(now, o, j)
		case j.Entry().Uses(class, length):
			a.invited = append(a.invited, j)
		default:
			j.CountIn(class, length, now)
		}
	}
}

// inviteOne invites a job that is asked each time, if it is eligible.
func (a *audience) inviteOne(now quantity.Instant, o *agents.Offer, j *index.Job) {
	why := j.Ineligible(now)
	if why == explain.Eligible && j.Avoids(o.Slice) {
		why = explain.TurnedDown
	}
	if why == explain.Eligible {
		a.invited = append(a.invited, j)
	} else {
		j.Counts().Add(why, now)
	}
}

// inviteCrowd invites those in the index: where there are more than the audience holds, one half are the first in the policy's order, and
// the other half the first that is late and the longest-waiting of the rest. So a late job is asked in its turn. Where bids go by the
// policy's index all of the audience are those that could bid most by it and by their queues' purses, and the first that is late. No more
// of them are looked at than are invited, except for chunks whose need is not met.
func (a *audience) inviteCrowd(now, at quantity.Instant, c *window.Class, w *window.Window) {
	most, from, length := a.cfg.Audience, len(a.invited), w.Length(at)
	a.invitation++
	switch {
	case a.byIndex:
		a.lineUp(now, c, length)
		for len(a.heads) > 0 && len(a.invited) < from+most {
			a.invited = append(a.invited, a.next(c, length))
		}
		if len(a.heads) == 0 {
			return // all are asked
		}
	case !a.crowded(c, length, most):
		a.inviteFirst(now, at, c, length, from+most)
		return
	default:
		a.inviteFirst(now, at, c, length, from+most/2)
	}
	for _, j := range a.invited[from:] {
		recordOf(j).invitation = a.invitation
	}
	if late, ok := a.index.Late(c.At(), length); ok && !a.asked(late) && a.late.Credit() > 0 {
		recordOf(late).invitation = a.invitation
		a.invited = append(a.invited, late)
	}
	if !a.byIndex {
		a.inviteLongest(at, c, length, from+most)
	}
}

// asked says whether a job is in this audience.
func (a *audience) asked(j *index.Job) bool { return recordOf(j).invitation == a.invitation }

// lineUp finds the heads of all queues for windows of a class and length, in the order in which they could bid.
func (a *audience) lineUp(now quantity.Instant, c *window.Class, length time.Duration) {
	a.heads = a.heads[:0]
	for _, g := range a.index.Groups() {
		h := head{list: g.On(c.At())}
		if h.list == nil {
			continue
		}
		if j, ok := h.list.Next(&h.cursor, length); ok {
			h.job, h.fullness = j, a.purses.fullness(now, j)
			a.insert(c, h)
		}
	}
}

// bound is the most that a head, or any behind it, could bid.
func (a *audience) bound(c *window.Class, h *head) int64 {
	return a.mostRate(h.job.Entry().Index(c.At()), index.Precedence(index.MostPrecedence), h.fullness)
}

// insert gives a head its place.
func (a *audience) insert(c *window.Class, h head) {
	h.bound = a.bound(c, &h)
	i, _ := slices.BinarySearchFunc(a.heads, h, func(x, y head) int {
		if by := cmp.Compare(y.bound, x.bound); by != 0 {
			return by
		}
		s, t := x.job.Entry().KeyOn(c.At()), y.job.Entry().KeyOn(c.At())
		return a.est.Policy().Compare(&s, &t)
	})
	a.heads = slices.Insert(a.heads, i, h)
}

// next takes the first of the heads; the next of its queue takes its place.
func (a *audience) next(c *window.Class, length time.Duration) *index.Job {
	h := &a.heads[0]
	j, ok := h.job, false
	if h.job, ok = h.list.Next(&h.cursor, length); ok {
		h.bound = a.bound(c, h)
		if len(a.heads) == 1 || h.bound > a.heads[1].bound {
			return j // it is the first still
		}
	}
	was := *h
	a.heads = slices.Delete(a.heads, 0, 1)
	if ok {
		a.insert(c, was)
	}
	return j
}

// beyond asks eligible jobs that were not invited, as long as the next could bid more for a millisecond of its run than all that were asked
// (best); start, restore and checkpoint are not deducted here, or thousands of similar jobs would be asked. So no bid that was not asked
// for beats the best: the index and its queue's purse bound a job's bid; only jobs that could are looked at. Where bids do not go by the
// index nobody is asked beyond the audience. hear says how much a job bids at most.
func (a *audience) beyond(now quantity.Instant, o *agents.Offer, w *window.Window, best int64, hear func(*index.Job) int64) {
	if !o.Full || !a.byIndex {
		return
	}
	c, length := o.Slice.Class(), w.Length(now)
	for len(a.heads) > 0 && a.heads[0].bound > best {
		fullness := a.heads[0].fullness
		j := a.next(c, length)
		if !a.asked(j) && a.mostRate(j.Entry().Index(c.At()), index.Precedence(j.Spec().Priority), fullness) > best {
			best = max(best, hear(j))
		}
	}
}

// crowded reports whether more than most jobs of the index can use a window of a class and length.
func (a *audience) crowded(c *window.Class, length time.Duration, most int) bool {
	for _, g := range a.index.Groups() {
		list := g.On(c.At())
		if list == nil {
			continue
		}
		for range list.Within(length) {
			if most--; most < 0 {
				return true
			}
		}
	}
	return false
}

// inviteFirst invites the first in the policy's order, until the given number are invited altogether.
func (a *audience) inviteFirst(now, at quantity.Instant, c *window.Class, length time.Duration, until int) {
	for _, g := range a.index.Groups() {
		if list := g.On(c.At()); list != nil && len(a.invited) < until {
			a.inviteInOrder(now, at, c, list.Within(length), until)
		}
	}
}

// inviteInOrder invites jobs in the policy's order until enough are invited; they come in the order of their keys. A job whose key has
// moved and so comes too early is held back until its turn. If its turn does not come, the rankings get its new place, so that it does not
// come too early again.
func (a *audience) inviteInOrder(now, at quantity.Instant, c *window.Class, jobs iter.Seq[*index.Job], until int) {
	held := a.held[:0]
	ahead := func(key *policy.Candidate) int {
		i, _ := slices.BinarySearchFunc(held, key, func(h lagging, key *policy.Candidate) int {
			return a.est.Policy().Compare(&h.Candidate, key)
		})
		return i
	}
	release := func(n int) {
		n = min(n, until-len(a.invited))
		for i := range held[:n] {
			a.invited = append(a.invited, held[i].job)
		}
		held = slices.Delete(held, 0, n)
	}
	for j := range jobs {
		if len(a.invited) >= until {
			break
		}
		if j.Entry().Moves() {
			if h := (lagging{j.Entry().KeyOn(c.At()), j}); a.index.CatchUp(at, j, &h.Candidate) {
				held = slices.Insert(held, ahead(&h.Candidate), h)
				continue
			}
		}
		if len(held) > 0 {
			key := j.Entry().KeyOn(c.At())
			release(ahead(&key))
		}
		if len(a.invited) >= until {
			break
		}
		a.invited = append(a.invited, j)
	}
	release(len(held))
	moved := a.moved[:0]
	for i := range held {
		moved = append(moved, held[i].job)
	}
	a.index.Rerank(now, moved)
	clear(held)
	clear(moved)
	a.held, a.moved = held[:0], moved[:0]
}

// inviteLongest invites those that have waited longest, and longer than a time, until the given number are invited altogether.
func (a *audience) inviteLongest(at quantity.Instant, c *window.Class, length time.Duration, until int) {
	longer := func(x, y *index.Job) int { return cmp.Or(cmp.Compare(y.Waited(at), x.Waited(at)), index.ByName(x, y)) }
	ahead := a.moved[:0]
	for _, j := range a.index.Ahead() {
		if !a.asked(j) && j.Entry().Need(c.At()) <= length {
			ahead = append(ahead, j)
		}
	}
	slices.SortFunc(ahead, longer)
	a.moved = ahead[:0]
	for j := range a.index.Senior(c.At(), length) {
		for len(ahead) > 0 && len(a.invited) < until && longer(ahead[0], j) < 0 {
			a.invited, ahead = append(a.invited, ahead[0]), ahead[1:]
		}
		if len(a.invited) >= until {
			return
		}
		if !a.asked(j) {
			recordOf(j).invitation = a.invitation
			a.invited = append(a.invited, j)
		}
	}
	a.invited = append(a.invited, ahead[:min(len(ahead), until-len(a.invited))]...)
}
