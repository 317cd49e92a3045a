package market

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// bid is a variant that stands: verified, calibrated and scored.
type bid struct {
	protocol.Variant
	job *Job
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
	// offer of the round that it is for, row its place in that one's table.
	offer, row int32
	// number of its job among those that bid, and of its work.
	number, work int32
	// won: it is part of the plan; awarded: and sold now.
	won, awarded bool
}

// gather collects what stands of everybody's variants for one window: those of built-in kinds by job, so that there is
// little left to sort.
func (f *Floor) gather(now quantity.Instant, at int32, o *offer, w *window, r *round, uncontended bool) {
	asked := f.invite(now, now, o, w)
	slices.SortFunc(asked, byName)
	for _, j := range asked {
		f.propose(now, at, j, o, w, uncontended)
	}
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		from := len(f.bids)
		variants := c.of(o.window)
		if len(variants) == 0 {
			continue
		}
		waits := f.meanwhile(now, c.job)
		if waits == "" && c.job.Avoids(o.slice) {
			waits = c.job.Sentence(TurnedDown)
		}
		for k := range variants {
			v := &variants[k]
			switch {
			case k >= f.cfg.Market.Variants:
				f.deny(c, v, "more variants for one window than the call allows")
				continue
			case waits != "":
				f.deny(c, v, waits)
				continue
			}
			if why := f.enter(now, at, c.job, o, w, v, c, from, uncontended); why != "" {
				f.deny(c, v, why)
				c.job.counts.add(Denied, now)
			}
		}
	}
}

// meanwhile says what keeps a job from being sold what its agent answers: it may have been paused, cancelled or served in other
// rounds while this one was open. Empty if nothing does.
func (f *Floor) meanwhile(now quantity.Instant, j *Job) string {
	if j.active == 0 {
		return "the job is over"
	}
	why := j.Ineligible(now)
	if why == Eligible {
		return ""
	}
	j.counts.add(why, now)
	return j.Sentence(why)
}

func (f *Floor) deny(c *caller, v *protocol.Variant, why string) {
	f.stats.Denied++
	c.notices = append(c.notices, protocol.Notice{Kind: protocol.Denied, Window: v.Window, Variant: v.ID, Text: why})
}

// propose lets a job's atomizer answer for a window.
func (f *Floor) propose(now quantity.Instant, at int32, j *Job, o *offer, w *window, uncontended bool) {
	if Wide(j.Spec()) {
		if !j.indexed {
			j.counts.refusal(placed(j.Spec()), now)
		}
		return
	}
	view, offered := j.View(), f.Window(j, o.slice.class, now, w.end)
	f.variants = atomizer.Propose(&view, offered, f.cfg.Market.Variants, now, f.variants[:0])
	if len(f.variants) == 0 {
		p, refusal := f.Fit(j, o.slice.class, now, w.end)
		if refusal.Why != atomizer.Interested {
			if !j.indexed {
				j.counts.refusal(refusal, now)
			}
			return
		}
		// The last resort of a job whose usual run time no longer fits: the whole window for its least useful piece.
		f.variants = append(f.variants, protocol.Variant{ID: 1, Range: p.Range, Start: now, Run: p.Run, Wall: p.Wall, Demand: p.Demand})
	}
	from := len(f.bids)
	for i := range f.variants {
		v := &f.variants[i]
		v.Window = w.id
		if why := f.enter(now, at, j, o, w, v, nil, from, uncontended); why != "" {
			f.stats.Denied++
			j.counts.add(Denied, now)
		}
	}
}

// enter verifies a variant again, whoever it is from, and scores it; from is where those of the same job begin. It says why
// it does not stand, empty if it does.
func (f *Floor) enter(now quantity.Instant, at int32, j *Job, o *offer, w *window, v *protocol.Variant, c *caller, from int, uncontended bool) string {
	f.stats.Variants++
	t := bid{Variant: *v, job: j, caller: c, offer: at}
	if t.Start < now && c != nil && t.Start >= c.asked {
		t.Start = now // its round took as long
	}
	if why := f.verify(now, &t, o, w); why != "" {
		return why
	}
	for i := from; i < len(f.bids); i++ {
		other := &f.bids[i]
		switch {
		case other.ID == t.ID:
			return "another variant has the same id"
		case other.Range.Overlaps(t.Range) && (other.end <= t.Start || t.end <= other.Start):
			return "it is apart in time from another variant of the same work: both could be won, and the work sold twice"
		}
	}
	f.value(now, &t, o, w, uncontended)
	f.bids = append(f.bids, t)
	return ""
}

// value scores a bid that stands.
func (f *Floor) value(now quantity.Instant, t *bid, o *offer, w *window, uncontended bool) {
	j, m := t.job, f.cfg.Market
	v := j.View()
	c := o.slice.class
	offered := f.Window(j, c, now, w.end)
	t.left = max(1, v.Left())
	if deadline := j.deadline(); deadline != quantity.Never {
		t.urgency = score.Laxity(j.finish(now, c), deadline)
	}
	t.calibrated = t.Score
	if !m.Trusting {
		record := j.Trust()
		t.calibrated = m.Trust().Calibrated(&record, t.Score)
	}
	length := t.length(offered.End)
	scale := max(1, v.Scale())
	own, _, weight := j.Use(now)
	features := m.Weights.Features(&score.Variant{
		Open: offered.Start, Shut: offered.End, Start: t.Start, End: t.Start.Add(length), Shortest: f.cfg.MinWindow,
		Demand: t.Demand[trp.Memory], Capacity: c.Capacity[trp.Memory], Waited: j.Waited(now),
		Attained: own / weight, Hour: policy.MemoryTime(c.Capacity, time.Hour),
		Profile: &j.Spec().Profile, Theta: j.Spec().Theta, From: t.Range.From, To: t.Range.To,
		Within: quantity.Amount(quantity.MulDiv(int64(c.Capacity[trp.Memory]), trp.Unscaled, scale)),
	})
	t.total = m.Weights.Total(t.calibrated, features)
	if uncontended {
		t.total = max(1, t.calibrated) // nobody else waits for the slice: it is as the job itself likes best
	}
	t.weight = quantity.MulDiv(score.Weight(t.total, length, m.PerTime), precedence(j.Spec().Priority), precedence(0))
}

// length of the lease, as far as the window goes.
func (t *bid) length(end quantity.Instant) time.Duration {
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
