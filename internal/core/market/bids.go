package market

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
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
	// rate is what a millisecond of it is worth, where scores are logarithms of that.
	rate          int64
	left, urgency int64
	// ahead is how long the work of its job takes that is not done yet, and will be when it begins.
	ahead time.Duration
	// price in the measure of weights; free: it goes first because its job starves, and pays nothing.
	price int64
	free  bool
	// offer of the round that it is for, row its place in that one's table.
	offer, row int32
	// number of its job among those that bid, and of its work.
	number, work int32
	// quoted: it is of a quote. won: it is part of the plan; awarded: and sold now.
	quoted, won, awarded bool
}

// gather collects what everybody answers for one window: the quotes of built-in kinds, and the bids of agents.
func (f *Floor) gather(now quantity.Instant, at int32, o *offer, w *window, r *round, uncontended bool) {
	for _, j := range f.invite(now, now, o, w) {
		f.hear(now, at, j, o, w)
	}
	f.askBeyond(now, at, o, w)
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
		f.scale(now, f.bids[from:])
	}
}

// hear has a job of a built-in kind quote for a window.
func (f *Floor) hear(now quantity.Instant, at int32, j *Job, o *offer, w *window) {
	q := f.quoteOf(now, j, o, w)
	f.stats.Variants += q.variants
	f.stats.Denied += q.denied
	if q.denied > 0 {
		j.counts.several(Denied, q.denied, now)
	}
	if q.refusal.Why != atomizer.Interested && !j.indexed {
		j.counts.refusal(q.refusal, now)
	}
	if len(q.terms) > 0 {
		f.read(now, q)
		f.asks = append(f.asks, ask{quote: q, offer: at})
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

// proposals lets a job's atomizer answer for a window, into f.variants; if it is not interested it says why.
func (f *Floor) proposals(now quantity.Instant, j *Job, o *offer, w *window) atomizer.Refusal {
	f.variants = f.variants[:0]
	if Wide(j.Spec()) {
		return placed(j.Spec())
	}
	view, offered := j.View(), f.Within(j, o.slice, now, w.end)
	f.variants = atomizer.Propose(&view, offered, f.cfg.Market.Variants, now, f.variants)
	if len(f.variants) > 0 {
		return atomizer.Refusal{}
	}
	p, refusal := f.Fit(j, o.slice.class, now, w.end)
	if refusal.Why == atomizer.Interested {
		// The last resort of a job whose usual run time no longer fits: the whole window for its least useful piece.
		f.variants = append(f.variants, protocol.Variant{ID: 1, Range: p.Range, Start: now, Run: p.Run, Wall: p.Wall, Demand: p.Demand})
	}
	return refusal
}

// propose enters what a job's atomizer answers for a window as bids.
func (f *Floor) propose(now quantity.Instant, at int32, j *Job, o *offer, w *window, uncontended bool) {
	if refusal := f.proposals(now, j, o, w); refusal.Why != atomizer.Interested && !j.indexed {
		j.counts.refusal(refusal, now)
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
func (f *Floor) enter(now quantity.Instant, at int32, j *Job, o *offer, w *window, v *protocol.Variant, c *caller, from int,
	uncontended bool) string {
	f.stats.Variants++
	t := bid{Variant: *v, job: j, caller: c, offer: at}
	if t.Start < now && c != nil && t.Start >= c.asked {
		t.Start = now // its round took as long
	}
	view := j.View()
	why := f.stands(now, &t, &view, o, w, f.bids[from:])
	if why == "" {
		f.value(now, &t, o, w, uncontended)
		f.bids = append(f.bids, t)
	}
	return why
}

// stands verifies a bid again, beside others of the same job, and says why it does not stand, empty if it does.
func (f *Floor) stands(now quantity.Instant, t *bid, view *atomizer.View, o *offer, w *window, others []bid) string {
	if why := f.verify(now, t, view, o, w); why != "" {
		return why
	}
	for i := range others {
		other := &others[i]
		switch {
		case other.ID == t.ID:
			return "another variant has the same id"
		case other.Range.Overlaps(t.Range) && (other.end <= t.Start || t.end <= other.Start):
			return "it is apart in time from another variant of the same work: both could be won, and the work sold twice"
		}
	}
	return ""
}

// value scores a bid that stands.
func (f *Floor) value(now quantity.Instant, t *bid, o *offer, w *window, uncontended bool) {
	j, m := t.job, f.cfg.Market
	v := j.View()
	c := o.slice.class
	offered := f.Within(j, o.slice, now, w.end)
	f.prospects(now, t, &v, c)
	t.calibrated = t.Score
	if !m.Trusting {
		record := j.Trust()
		t.calibrated = m.Trust().Calibrated(&record, t.Score)
	}
	x := f.piece(t, &v, c, &offered)
	own, _, weight := j.Use(now)
	x.Waited, x.Attained, x.Slack = j.Waited(now), own/weight, f.slack(now, t, c)
	sum, length, first := m.Weights.Features(&x).Sum(m.Weights.System), t.length(offered.End), precedence(j.Spec().Priority)
	t.total = m.Weights.TotalOf(t.calibrated, sum)
	if m.Weights.Rates() {
		t.rate = m.Weights.Rate(t.calibrated, sum, x.Index, first)
		t.weight = score.Worth(t.rate, t.Run.Milliseconds(), length.Milliseconds(), m.PerTime || w.end != quantity.Never)
		return
	}
	if uncontended {
		t.total = max(1, t.calibrated) // nobody else waits for the slice: it is as the job itself likes best
	}
	t.weight = quantity.MulDiv(score.Weight(t.total, length, m.PerTime), first, precedence(0))
}

// slack is how long a bid's job may stand still from now on until its deadline is out of reach on a class; the longest time without a
// deadline.
func (f *Floor) slack(now quantity.Instant, t *bid, c *Class) time.Duration {
	slack := f.laxity(t.job, c, now)
	if slack == math.MaxInt64 {
		return slack
	}
	return slack + t.ahead
}

// prospects notes what is left of a bid's job, and how pressing its deadline is.
func (f *Floor) prospects(now quantity.Instant, t *bid, v *atomizer.View, c *Class) {
	t.left = max(1, v.Left())
	if deadline := t.job.deadline(); deadline != quantity.Never {
		t.urgency = score.Laxity(t.job.finish(now, c), deadline)
	}
}

// piece is what a bid is scored by, but for what its job has had and how long it waits.
func (f *Floor) piece(t *bid, v *atomizer.View, c *Class, offered *atomizer.Window) score.Variant {
	j, scale := t.job, max(1, v.Scale())
	return score.Variant{
		Open: offered.Start, Shut: offered.End, Start: t.Start, End: t.Start.Add(t.length(offered.End)), Shortest: f.cfg.MinWindow,
		Demand: t.Demand[trp.Memory], Capacity: c.Capacity[trp.Memory], Hour: c.hour(),
		Index: f.trusted(j, c), Profile: &j.Spec().Profile, Theta: j.Spec().Theta, From: t.Range.From, To: t.Range.To,
		Within: quantity.Amount(quantity.MulDiv(int64(c.Capacity[trp.Memory]), trp.Unscaled, scale)),
	}
}

// hour of a slice of the class, in memory-time.
func (c *Class) hour() int64 { return policy.MemoryTime(c.Capacity, time.Hour) }

// length of the lease, as far as the window goes.
func (t *bid) length(end quantity.Instant) time.Duration {
	return min(t.end, max(end, t.Start)).Sub(t.Start)
}

// mostPrecedence bounds the priority that counts in a bid, so that sums of weights stay within 62 bits.
const mostPrecedence = 500

// precedence is what a priority multiplies a bid by, in parts per 1024: a hundred points double it.
func precedence(priority int32) int64 {
	p := min(max(int64(priority), -mostPrecedence), mostPrecedence) + mostPrecedence
	return (1024 * (100 + p%100) / 100) << (p / 100) >> (mostPrecedence / 100)
}
