package market

import (
	"cmp"
	"iter"
	"slices"

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
// order, and one half have waited longest of the rest. So whoever has waited longest of all is always asked. No more of them are
// looked at than are invited, but for chunks of those whose need is not met.
func (f *Floor) inviteCrowd(now, at quantity.Instant, c *Class, w *window) {
	most, from := f.cfg.Market.Audience, len(f.invited)
	for _, g := range f.groups {
		if c.at < len(g.rankings) {
			f.inviteInOrder(now, at, c, g.rankings[c.at].Within(w.length(at)), from+most+1)
		}
	}
	if len(f.invited)-from <= most {
		return
	}
	f.invited = f.invited[:from+most/2]
	f.invitation++
	for _, j := range f.invited[from:] {
		j.invitation = f.invitation
	}
	f.inviteLongest(at, c, w, from+most)
}

// inviteInOrder invites some jobs, which come in the order of their keys, in the policy's order, until so many are invited
// altogether. Who moves comes too early, if not in its place (foremost), and is held back until it is its turn.
func (f *Floor) inviteInOrder(now, at quantity.Instant, c *Class, jobs iter.Seq[*Job], until int) {
	held, moved := f.held[:0], f.moved[:0]
	for j := range jobs {
		if len(f.invited) >= until {
			break
		}
		key := j.key
		key.Laxity = j.answers[c.at].laxity
		for len(held) > 0 && len(f.invited) < until && f.cfg.Policy.Compare(&held[0].Candidate, &key) < 0 {
			f.invited = append(f.invited, held[0].job)
			held = slices.Delete(held, 0, 1)
		}
		if j.moves {
			if own, _, _ := j.Use(at); own > key.Attained {
				key.Attained = own
				i, _ := slices.BinarySearchFunc(held, key, func(h candidate, key policy.Candidate) int { return f.cfg.Policy.Compare(&h.Candidate, &key) })
				held, moved = slices.Insert(held, i, candidate{key, j}), append(moved, j)
				continue
			}
		}
		if len(f.invited) < until {
			f.invited = append(f.invited, j)
		}
	}
	for i := range held {
		if len(f.invited) < until {
			f.invited = append(f.invited, held[i].job)
		}
	}
	f.rerank(now, moved)
	clear(held)
	clear(moved)
	f.held, f.moved = held[:0], moved[:0]
}

// inviteLongest invites those that have waited longest, until so many are invited altogether.
func (f *Floor) inviteLongest(at quantity.Instant, c *Class, w *window, until int) {
	length := w.length(at)
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
			f.invited = append(f.invited, j)
		}
	}
	f.invited = append(f.invited, ahead[:min(len(ahead), until-len(f.invited))]...)
}

// wait enters a job among those that wait, by when its wait began. Few have been served ahead of time: they are kept apart until
// they change, for as long as that is to come they wait as little as who comes now.
func (f *Floor) wait(now quantity.Instant, j *Job) {
	j.waits = j.since()
	if j.waits > now {
		f.ahead = append(f.ahead, j)
		j.ahead = len(f.ahead)
		return
	}
	for i := range f.classes {
		if need := j.answers[i].need; need != never {
			f.waits[i].Insert(byWait, need, j)
		}
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
