package market

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// invite lists the jobs of built-in kinds that are asked for a window: all that are eligible as far as the audience goes, the
// first of the policy and the longest waiting, or those that changed if the window was offered before. The instant at which it begins may be
// one to come.
func (f *Floor) invite(now, at quantity.Instant, o *offer, w *window) []*Job {
	f.invited = f.invited[:0]
	if o.full {
		f.inviteUnindexed(at, o)
		f.inviteCrowd(now, at, o.slice.class, w)
	} else {
		f.inviteFresh(at, o, w)
	}
	return f.invited
}

// inviteFresh invites who is eligible among those that changed.
func (f *Floor) inviteFresh(now quantity.Instant, o *offer, w *window) {
	for _, j := range f.fresh.List() {
		switch {
		case j.active == 0 || j.Spec().External:
		case !j.indexed:
			f.inviteOne(now, o, j)
		case j.ineligible == Eligible && j.answers[o.slice.class.at].need <= w.length(now):
			f.invited = append(f.invited, j)
		default:
			j.countIn(o.slice.class.at, w.length(now), now)
		}
	}
}

// inviteUnindexed invites who is eligible of those that are asked each time.
func (f *Floor) inviteUnindexed(now quantity.Instant, o *offer) {
	for _, j := range f.unindexed {
		if j.active > 0 && !j.Spec().External {
			f.inviteOne(now, o, j)
		}
	}
}

func (f *Floor) inviteOne(now quantity.Instant, o *offer, j *Job) {
	why := j.Ineligible(now)
	if why == Eligible && j.Avoids(o.slice) {
		why = TurnedDown
	}
	if why == Eligible {
		f.invited = append(f.invited, j)
	} else {
		j.counts.add(why, now)
	}
}

// inviteCrowd invites those in the index: where there are more than the audience holds, one half are the first in the policy's
// order, and the others the first that is late and those of the rest that have waited longest. So who is late is asked in its turn. Where bids go by the
// policy's index all of the audience are those that could bid most by it and by their queues' purses, and to them comes the first that is late. No more of
// them are looked at than are invited, but for chunks of those whose need is not met.
func (f *Floor) inviteCrowd(now, at quantity.Instant, c *Class, w *window) {
	most, from, length := f.cfg.Market.Audience, len(f.invited), w.length(at)
	first := most / 2
	if f.ranksBids() {
		first = most
	}
	f.invitation++
	switch {
	case f.ranksBids():
		f.inviteByIndex(now, c, length, from+most)
		if len(f.heads) == 0 {
			return // all are asked
		}
	case !f.crowded(c, length, most):
		f.inviteFirst(now, at, c, length, from+most)
		return
	default:
		f.inviteFirst(now, at, c, length, from+first)
	}
	for _, j := range f.invited[from:] {
		j.invitation = f.invitation
	}
	if late, ok := f.late[c.at].First(length); ok && late.invitation != f.invitation && f.budget.Credit() > 0 {
		late.invitation = f.invitation
		f.invited = append(f.invited, late)
	}
	if !f.ranksBids() {
		f.inviteLongest(at, c, length, from+most)
	}
}

// ranksBids says whether the rankings are in the order of what jobs could bid at most: bids go by the policy's index. Then each queue has
// its own, since its purse counts in all of its bids.
func (f *Floor) ranksBids() bool { return f.indexer != nil && f.cfg.Market.Weights.Rates() }

// head is the first job of a queue's ranking that was not looked at yet, with the fullness of the queue's purse. bound is the most that it,
// or any behind it, could bid for a millisecond.
type head struct {
	job             *Job
	list            *ranking.List[*Job]
	cursor          ranking.Cursor
	fullness, bound int64
}

// mostRate bounds the rate of a job with an index and a precedence.
func (f *Floor) mostRate(x, precedence, fullness int64) int64 {
	return scaled(f.cfg.Market.Weights.MostRate(x, precedence), fullness)
}

// lineUpHeads finds the heads of all queues for windows of a class and length, in the order in which they could bid.
func (f *Floor) lineUpHeads(now quantity.Instant, c *Class, length time.Duration) {
	f.heads = f.heads[:0]
	for _, g := range f.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		h := head{list: &g.rankings[c.at]}
		if j, ok := h.list.Next(&h.cursor, length); ok {
			h.job, h.fullness = j, f.fullness(now, j)
			f.insertHead(c, h)
		}
	}
}

// boundOf is the most that a head, or any behind it, could bid.
func (f *Floor) boundOf(c *Class, h *head) int64 {
	return f.mostRate(h.job.answers[c.at].index, precedence(mostPrecedence), h.fullness)
}

// insertHead gives a head its place.
func (f *Floor) insertHead(c *Class, h head) {
	h.bound = f.boundOf(c, &h)
	i, _ := slices.BinarySearchFunc(f.heads, h, func(a, b head) int {
		if by := cmp.Compare(b.bound, a.bound); by != 0 {
			return by
		}
		x, y := a.job.keyOn(c), b.job.keyOn(c)
		return f.cfg.Policy.Compare(&x, &y)
	})
	f.heads = slices.Insert(f.heads, i, h)
}

// nextHead takes the first of the heads, behind which the next of its queue comes to stand.
func (f *Floor) nextHead(c *Class, length time.Duration) *Job {
	h := &f.heads[0]
	j, ok := h.job, false
	if h.job, ok = h.list.Next(&h.cursor, length); ok {
		h.bound = f.boundOf(c, h)
		if len(f.heads) == 1 || h.bound > f.heads[1].bound {
			return j // it is the first still
		}
	}
	was := *h
	f.heads = slices.Delete(f.heads, 0, 1)
	if ok {
		f.insertHead(c, was)
	}
	return j
}

// inviteByIndex invites those that could bid most, until so many are invited altogether.
func (f *Floor) inviteByIndex(now quantity.Instant, c *Class, length time.Duration, until int) {
	f.lineUpHeads(now, c, length)
	for len(f.heads) > 0 && len(f.invited) < until {
		f.invited = append(f.invited, f.nextHead(c, length))
	}
}

// askBeyond asks who is eligible and was not invited, for as long as it could bid more for a millisecond of its run than everybody who was
// asked does; what start, restore and checkpoint take off a lease is not counted here, or thousands of alike jobs would be asked. So no bid that is not heard is better than the best that is: the index bounds what a job bids, and the fullness of its queue's
// purse; no more jobs are looked at than could. Where bids do not go by the index nobody is asked beyond the audience.
func (f *Floor) askBeyond(now quantity.Instant, at int32, o *offer, w *window) {
	if !o.full || !f.ranksBids() || len(f.heads) == 0 {
		return
	}
	c, length, best := o.slice.class, w.length(now), int64(0)
	heard := func(from int) {
		for i := from; i < len(f.asks) && best < f.heads[0].bound; i++ {
			if a := &f.asks[i]; a.offer == at {
				best = max(best, f.bestRate(&reckoning{now: now, offer: o}, a.quote))
			}
		}
	}
	heard(0)
	for len(f.heads) > 0 && f.heads[0].bound > best {
		fullness := f.heads[0].fullness
		j := f.nextHead(c, length)
		if j.invitation == f.invitation || f.mostRate(j.answers[c.at].index, precedence(j.Spec().Priority), fullness) <= best {
			continue
		}
		n := len(f.asks)
		if f.hear(now, at, j, o, w); len(f.heads) > 0 {
			heard(n)
		}
	}
}

// bestRate is the most that a variant of a quote is worth in a millisecond of its run.
func (f *Floor) bestRate(r *reckoning, q *quote) (best int64) {
	for i := range q.terms {
		best = max(best, f.rate(r, q, i))
	}
	return best
}

// crowded says whether more than so many jobs of the index can use a window of a class and length.
func (f *Floor) crowded(c *Class, length time.Duration, most int) bool {
	for _, g := range f.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		for range g.rankings[c.at].Within(length) {
			if most--; most < 0 {
				return true
			}
		}
	}
	return false
}

// inviteFirst invites the first in the policy's order, until so many are invited altogether.
func (f *Floor) inviteFirst(now, at quantity.Instant, c *Class, length time.Duration, until int) {
	for _, g := range f.groups {
		if c.at < len(g.rankings) && len(f.invited) < until {
			f.inviteInOrder(now, at, c, g.rankings[c.at].Within(length), until)
		}
	}
}

// inviteInOrder invites some jobs, which come in the order of their keys, in the policy's order, until so many are invited
// altogether. Who moves comes too early, if not in its place (foremost), and is held back until it is its turn. If that does not come
// it is given its place in the rankings, so that it does not come too early again.
func (f *Floor) inviteInOrder(now, at quantity.Instant, c *Class, jobs iter.Seq[*Job], until int) {
	held := f.held[:0]
	ahead := func(key *policy.Candidate) int {
		i, _ := slices.BinarySearchFunc(held, key, func(h candidate, key *policy.Candidate) int { return f.cfg.Policy.Compare(&h.Candidate, key) })
		return i
	}
	release := func(n int) {
		n = min(n, until-len(f.invited))
		for i := range held[:n] {
			f.invited = append(f.invited, held[i].job)
		}
		held = slices.Delete(held, 0, n)
	}
	for j := range jobs {
		if len(f.invited) >= until {
			break
		}
		if j.moves {
			if h := (candidate{j.keyOn(c), j}); f.behind(at, j, &h.Candidate) {
				held = slices.Insert(held, ahead(&h.Candidate), h)
				continue
			}
		}
		if len(held) > 0 {
			key := j.keyOn(c)
			release(ahead(&key))
		}
		if len(f.invited) >= until {
			break
		}
		f.invited = append(f.invited, j)
	}
	release(len(held))
	moved := f.moved[:0]
	for i := range held {
		moved = append(moved, held[i].job)
	}
	f.rerank(now, moved)
	clear(held)
	clear(moved)
	f.held, f.moved = held[:0], moved[:0]
}

// inviteLongest invites those that have waited longest, and longer than a time, until so many are invited altogether.
func (f *Floor) inviteLongest(at quantity.Instant, c *Class, length time.Duration, until int) {
	longer := func(a, b *Job) int { return cmp.Or(cmp.Compare(b.Waited(at), a.Waited(at)), byName(a, b)) }
	ahead := f.moved[:0]
	for _, j := range f.ahead {
		if j.invitation != f.invitation && j.answers[c.at].need <= length {
			ahead = append(ahead, j)
		}
	}
	slices.SortFunc(ahead, longer)
	f.moved = ahead[:0]
	for j := range f.waits[c.at].Within(length) {
		for len(ahead) > 0 && len(f.invited) < until && longer(ahead[0], j) < 0 {
			f.invited, ahead = append(f.invited, ahead[0]), ahead[1:]
		}
		if len(f.invited) >= until {
			return
		}
		if j.invitation != f.invitation {
			f.invited, j.invitation = append(f.invited, j), f.invitation
		}
	}
	f.invited = append(f.invited, ahead[:min(len(ahead), until-len(f.invited))]...)
}

// wait finds when a job's wait began, by which it enters among those that wait. Few have been served ahead of time: they are kept
// apart until they change, for as long as that is to come they wait as little as who comes now.
func (f *Floor) wait(now quantity.Instant, j *Job) {
	j.waits = j.since()
	if j.waits > now {
		f.ahead = append(f.ahead, j)
		j.ahead = len(f.ahead)
	}
}

// unwait takes a job out again.
func (f *Floor) unwait(j *Job) {
	if j.ahead > 0 {
		last := f.ahead[len(f.ahead)-1]
		f.ahead[j.ahead-1], last.ahead = last, j.ahead
		f.ahead[len(f.ahead)-1] = nil
		f.ahead = f.ahead[:len(f.ahead)-1]
		j.ahead = 0
		return
	}
	for i := range j.answers {
		if j.answers[i].need != never {
			f.waits[i].Remove(waiting, j)
		}
	}
}

func byWait(a, b *Job) int {
	if c := cmp.Compare(a.waits, b.waits); c != 0 {
		return c
	}
	return byName(a, b)
}

// waiting ranks jobs so.
var waiting = ranking.Order[*Job]{Compare: byWait, Key: func(j *Job) ranking.Key { return ranking.Key{int64(j.waits)} }} //nolint:gochecknoglobals // read-only by use; Go has no constant structs
