package zone

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// tender is a variant that stands: verified, calibrated and scored.
type tender struct {
	protocol.Variant
	job *state
	// caller it came from; nil if its atomizer answered by itself.
	caller *caller
	// end of the lease, grace included; Never for a rigid job without a walltime.
	end quantity.Instant
	// speed of the job there, with its option, in parts per thousand.
	speed int64
	// calibrated score of the job, total of both sides, and the weight it is cleared with.
	calibrated, total, weight int64
	left, urgency             int64
	// price in the measure of weights; free: it goes first because its job starves, and pays nothing.
	price int64
	free  bool
	// lot of the round that it is for, bid its place in that lot's table.
	lot, bid int32
	// number of its job among those that bid, and of its work.
	number, work int32
	// won: it is part of the plan; awarded: and sold now.
	won, awarded bool
}

// gather collects what stands of everybody's variants for one window: those of built-in kinds by job, so that there is
// little left to sort.
func (z *Zone) gather(now quantity.Instant, l *lot, w *window, r *round) {
	asked := z.hearers(now, l, w)
	slices.SortFunc(asked, func(a, b *state) int { return cmp.Compare(a.Job, b.Job) })
	for _, st := range asked {
		z.propose(now, st, l, w)
	}
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		from := len(z.tenders)
		variants := c.of(l.window)
		if len(variants) == 0 {
			continue
		}
		waits := z.meanwhile(now, c.job)
		if waits == "" && c.job.avoids(l.slice) {
			waits = z.sentence(c.job, cause{reason: turnedDown})
		}
		for j := range variants {
			v := &variants[j]
			switch {
			case j >= z.cfg.Market.Variants:
				z.deny(c, v, "more variants for one window than the call allows")
				continue
			case waits != "":
				z.deny(c, v, waits)
				continue
			}
			if why := z.enter(now, c.job, l, w, v, c, from); why != "" {
				z.deny(c, v, why)
				c.job.counts.add(denied, now)
			}
		}
	}
}

// meanwhile says what keeps a job from being sold what its agent answers: it may have been paused, cancelled or served in other
// rounds while this one was open. Empty if nothing does.
func (z *Zone) meanwhile(now quantity.Instant, st *state) string {
	if st.alive == 0 {
		return "the job is over"
	}
	why := z.deafness(now, st)
	if why == interested {
		return ""
	}
	st.counts.add(why, now)
	return z.sentence(st, cause{reason: why})
}

func (z *Zone) deny(c *caller, v *protocol.Variant, why string) {
	z.stats.Denied++
	c.notices = append(c.notices, protocol.Notice{Kind: protocol.Denied, Window: v.Window, Variant: v.ID, Text: why})
}

// hearers are the jobs of built-in kinds that answer for a window: all that are interested as far as the audience goes, the
// first of the policy and the longest waiting, or those that changed if the window was offered before.
func (z *Zone) hearers(now quantity.Instant, l *lot, w *window) []*state {
	list := z.audience[:0]
	length := w.length(now)
	answers := func(st *state) bool {
		if st.alive == 0 || st.Spec.External {
			return false
		}
		if st.indexed {
			if st.deaf != interested || st.answers[l.slice.class.at].need > length {
				if !l.full {
					st.countIn(&st.counts, l.slice.class.at, length, 1, now)
				}
				return false
			}
			return true
		}
		why := z.deafness(now, st)
		if why == interested && st.avoids(l.slice) {
			why = turnedDown
		}
		if why != interested {
			st.counts.add(why, now)
		}
		return why == interested
	}
	if !l.full {
		for _, st := range z.fresh {
			if answers(st) {
				list = append(list, st)
			}
		}
		z.audience = list
		return list
	}
	for _, st := range z.loud {
		if answers(st) {
			list = append(list, st)
		}
	}
	from := len(list)
	for _, g := range z.groups {
		if l.slice.class.at < len(g.rankings) {
			for st := range g.rankings[l.slice.class.at].Within(length) {
				list = append(list, st)
			}
		}
	}
	list = list[:from+z.invite(now, list[from:])]
	z.audience = list
	return list
}

// invite brings those that are asked to the front of a list in the order of the policy and returns how many they are: where
// there are more than the audience holds, one half are the first in that order, and one half have waited longest of the rest.
// So whoever has waited longest of all is always asked.
func (z *Zone) invite(now quantity.Instant, list []*state) int {
	most := z.cfg.Market.Audience
	if len(list) <= most {
		return len(list)
	}
	slices.SortFunc(list[most/2:], func(a, b *state) int {
		return cmp.Or(cmp.Compare(b.waited(now), a.waited(now)), cmp.Compare(a.Job, b.Job))
	})
	return most
}

// propose lets a job's atomizer answer for a window.
func (z *Zone) propose(now quantity.Instant, st *state, l *lot, w *window) {
	if gang(st.Spec) {
		if !st.indexed {
			st.counts.refusal(placed(st.Spec), now)
		}
		return
	}
	view, offered := st.view(), z.window(st, l.slice.class, now, w.end)
	z.variants = atomizer.Propose(&view, offered, z.cfg.Market.Variants, now, z.variants[:0])
	if len(z.variants) == 0 {
		p, refusal := z.fit(st, l.slice.class, now, w.end)
		if refusal.Why != atomizer.Interested {
			if !st.indexed {
				st.counts.refusal(refusal, now)
			}
			return
		}
		// The last resort of a job whose usual run time no longer fits: the whole window for its least useful piece.
		z.variants = append(z.variants, protocol.Variant{ID: 1, Range: p.Range, Start: now, Run: p.Run, Wall: p.Wall, Demand: p.Demand})
	}
	from := len(z.tenders)
	for i := range z.variants {
		v := &z.variants[i]
		v.Window = w.id
		if why := z.enter(now, st, l, w, v, nil, from); why != "" {
			z.stats.Denied++
			st.counts.add(denied, now)
		}
	}
}

// enter verifies a variant again, whoever it is from, and scores it; from is where those of the same job begin. It says why
// it does not stand, empty if it does.
func (z *Zone) enter(now quantity.Instant, st *state, l *lot, w *window, v *protocol.Variant, c *caller, from int) string {
	z.stats.Variants++
	t := tender{Variant: *v, job: st, caller: c, lot: z.lotAt}
	if t.Start < now && c != nil && t.Start >= c.asked {
		t.Start = now // its round took as long
	}
	if why := z.verify(now, &t, l, w); why != "" {
		return why
	}
	for i := from; i < len(z.tenders); i++ {
		o := &z.tenders[i]
		switch {
		case o.ID == t.ID:
			return "another variant has the same id"
		case o.Range.Overlaps(t.Range) && (o.end <= t.Start || t.end <= o.Start):
			return "it is apart in time from another variant of the same work: both could be won, and the work sold twice"
		}
	}
	z.value(now, &t, l, w)
	z.tenders = append(z.tenders, t)
	return ""
}

// value scores a tender that stands.
func (z *Zone) value(now quantity.Instant, t *tender, l *lot, w *window) {
	st, m := t.job, z.cfg.Market
	v := st.view()
	c := l.slice.class
	offered := z.window(st, c, now, w.end)
	t.left = max(1, v.Left())
	if deadline := st.deadline(); deadline != quantity.Never {
		t.urgency = score.Laxity(st.finish(now, c), deadline)
	}
	t.calibrated = t.Score
	if !m.Trusting {
		record := st.record()
		t.calibrated = z.trust().Calibrated(&record, t.Score)
	}
	length := t.length(offered.End)
	scale := max(1, v.Scale())
	f := m.Weights.Features(&score.Variant{
		Open: offered.Start, Shut: offered.End, Start: t.Start, End: t.Start.Add(length), Shortest: z.cfg.MinWindow,
		Demand: t.Demand[trp.Memory], Capacity: c.capacity[trp.Memory], Waited: st.waited(now),
		Attained: (st.Attained + st.had(now)) / max(1, st.q.Weight), Hour: memoryTime(c.capacity, time.Hour),
		Profile: &st.Spec.Profile, Theta: st.Spec.Theta, From: t.Range.From, To: t.Range.To,
		Within: quantity.Amount(quantity.MulDiv(int64(c.capacity[trp.Memory]), trp.Unscaled, scale)),
	})
	t.total = m.Weights.Total(t.calibrated, f)
	if z.relaxed {
		t.total = max(1, t.calibrated) // nobody else waits for the slice: it is as the job itself likes best
	}
	t.weight = quantity.MulDiv(score.Weight(t.total, length, m.PerTime), precedence(st.Spec.Priority), precedence(0))
}

// length of the lease, as far as the window goes.
func (t *tender) length(end quantity.Instant) time.Duration {
	return min(t.end, max(end, t.Start)).Sub(t.Start)
}

// mostPrecedence bounds the priority that counts in a bid, so that sums of weights stay within 62 bits.
const mostPrecedence = 500

// precedence is what a priority multiplies a bid by, in parts per 1024: a hundred points double it.
func precedence(priority int32) int64 {
	if planted.In(planted.IgnorePriority) {
		priority = 0
	}
	p := min(max(int64(priority), -mostPrecedence), mostPrecedence) + mostPrecedence
	return (1024 * (100 + p%100) / 100) << (p / 100) >> (mostPrecedence / 100)
}
