package market

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
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
// order, and one half have waited longest of the rest. So whoever has waited longest of all is always asked. Where bids go by the
// policy's index all of the audience are the first in its order, and to them come those that go first since they have waited too long, at
// most half as many. No more of them are looked at than are invited, but for chunks of those whose need is not met.
func (f *Floor) inviteCrowd(now, at quantity.Instant, c *Class, w *window) {
	most, from, length := f.cfg.Market.Audience, len(f.invited), w.length(at)
	first, all, waited := most/2, most, time.Duration(-1)
	if f.ranksBids() {
		first, all, waited = most, most+most/2, f.cfg.Market.Starve
	}
	f.invitation++
	if !f.crowded(c, length, most) {
		f.inviteFirst(now, at, c, length, from+most)
		return
	}
	f.inviteFirst(now, at, c, length, from+first)
	for _, j := range f.invited[from:] {
		j.invitation = f.invitation
	}
	if f.ranksBids() && waited < 0 {
		return
	}
	f.inviteLongest(at, c, length, from+all, waited)
}

// ranksBids says whether the rankings are in the order of what jobs could bid at most: bids go by the policy's index.
func (f *Floor) ranksBids() bool { return f.indexer != nil && f.cfg.Market.Weights.Rates() }

// askBeyond asks who is eligible and was not invited, for as long as it could bid more for a millisecond than everybody who was asked
// does. So no bid that is not heard is better than the best that is: the index bounds what a job bids, and the fullness of its queue's purse.
// Where bids do not go by the index nobody is asked beyond the audience.
func (f *Floor) askBeyond(now quantity.Instant, at int32, o *offer, w *window) {
	c, length := o.slice.class, w.length(now)
	if !o.full || !f.ranksBids() || !f.crowded(c, length, f.cfg.Market.Audience) {
		return
	}
	best, m := int64(0), f.cfg.Market
	heard := func(from int) {
		for i := from; i < len(f.asks); i++ {
			if a := &f.asks[i]; a.offer == at {
				best = max(best, f.bestRate(&reckoning{now: now, offer: o}, a.quote))
			}
		}
	}
	heard(0)
	for _, g := range f.groups {
		if c.at >= len(g.rankings) {
			continue
		}
		for j := range g.rankings[c.at].Within(length) {
			most := m.Weights.MostRate(j.answers[c.at].index, precedence(mostPrecedence))
			if most <= best {
				break
			}
			if j.invitation == f.invitation || scaled(f.mostRate(j, c), f.fullness(now, j)) <= best {
				continue
			}
			n := len(f.asks)
			f.hear(now, at, j, o, w)
			heard(n)
		}
	}
}

// mostRate bounds the rate of any variant of an indexed job on a class.
func (f *Floor) mostRate(j *Job, c *Class) int64 {
	return f.cfg.Market.Weights.MostRate(j.answers[c.at].index, precedence(j.Spec().Priority))
}

// bestRate is the most that a variant of a quote is worth in a millisecond of its lease.
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
			if own, _, _ := j.Use(at); own > j.key.Attained {
				h := candidate{j.keyOn(c), j}
				h.Attained = own
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

// keyOn is what a job is compared by on a class.
func (j *Job) keyOn(c *Class) policy.Candidate {
	key := j.key
	key.Laxity, key.Index = j.answers[c.at].laxity, j.answers[c.at].index
	return key
}

// inviteLongest invites those that have waited longest, and longer than a time, until so many are invited altogether.
func (f *Floor) inviteLongest(at quantity.Instant, c *Class, length time.Duration, until int, than time.Duration) {
	longer := func(a, b *Job) int { return cmp.Or(cmp.Compare(b.Waited(at), a.Waited(at)), byName(a, b)) }
	ahead := f.moved[:0]
	for _, j := range f.ahead {
		if j.invitation != f.invitation && j.answers[c.at].need <= length && j.Waited(at) > than {
			ahead = append(ahead, j)
		}
	}
	slices.SortFunc(ahead, longer)
	f.moved = ahead[:0]
	for j := range f.waits[c.at].Within(length) {
		if j.Waited(at) <= than {
			break
		}
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
			f.waits[i].Remove(byWait, j)
		}
	}
}

func byWait(a, b *Job) int {
	if c := cmp.Compare(a.waits, b.waits); c != 0 {
		return c
	}
	return byName(a, b)
}
