package auction

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// worth is what a bid counts for.
type worth struct {
	// calibrated score of the job, total of both sides, and the weight it is cleared with.
	calibrated, total, weight int64
	// rate is the value of a millisecond of it, where scores are logarithms of that.
	rate int64
}

// bid is a variant that was not denied. That of a quote is weighed anew in each sifting, that of an agent when it is entered.
type bid struct {
	variant.Verified
	// callee it came from; nil if its atomizer answered by itself.
	callee *agents.Callee
	worth
	// left is how much work its job has, urgency how pressing its deadline is.
	left, urgency int64
	// ahead is how long the work of its job takes that is not done yet, and will be when it begins.
	ahead time.Duration
	// price in the measure of weights; late: it goes first because its job is late, and pays nothing.
	price int64
	late  bool
	// offer of the round that it is for, row its place in that one's table.
	offer, row int32
	// number of its job among those that bid, and of its work.
	number, work int32
	// quoted: it is of a quote. won: it is part of the plan; awarded: and sold now.
	quoted, won, awarded bool
}

// length of the lease, as far as the window goes.
func (t *bid) length(end quantity.Instant) time.Duration {
	return min(t.End, max(end, t.Start)).Sub(t.Start)
}

// cost is what a bid for a slice of a class takes of the budget of the late.
func (t *bid) cost(c *window.Class) int64 { return c.Cost(t.End.Sub(t.Start)) }

// ticks are where a bid begins and ends as clearing counts, from now on; one without an end ends with the horizon.
func (t *bid) ticks(now quantity.Instant, horizon time.Duration) (start, end int64) {
	start = int64(t.Start.Sub(now) / variant.Tick)
	if t.End == quantity.Never {
		return start, max(start+1, int64(horizon/variant.Tick)) // as far as windows are sold
	}
	return start, int64((t.End.Sub(now) + variant.Tick - 1) / variant.Tick)
}

const (
	// PurseTime is the refill that a full purse holds. A queue's bids count as far as its purse is full, so that recent wins soon lower its
	// next ones; docs/incentives.md shows the gain that longer times allow.
	PurseTime = time.Hour
	// leastScale, in parts per thousand, is what remains of the bids of a queue without credits: they still win where nobody
	// else wants the time, and the better of them before the worse.
	leastScale = 1
	// full is the fullness of a purse that is full.
	full = 1000
)

// purses are what queues pay from. Invariant: a bid counts as far as its queue's purse is full, and never for nothing.
type purses struct {
	seller award.Seller
	// free: nothing is paid, and all bids count in full.
	free bool
}

// fullness of the purse of a job's queue, in parts per thousand: bids count as far as it is full.
func (p *purses) fullness(now quantity.Instant, j *index.Job) int64 {
	if p.free {
		return full
	}
	purse, most := p.seller.Purse(now, j)
	if purse >= most {
		return full
	}
	return max(quantity.MulDiv(purse, full, most), leastScale)
}

// scaled is a weight that counts so far, but not nothing.
func scaled(weight, fullness int64) int64 {
	if fullness >= full || weight <= 0 {
		return weight
	}
	return max(1, quantity.MulDiv(weight, fullness, full))
}

// appraiser says what a bid is worth. Invariant: a bid's worth follows from its terms, from what is known of its job and from the instant
// alone, and is computed in one place (weigh), whether the bid was made now or is kept in a quote.
type appraiser struct {
	cfg       *Config
	est       *index.Estimator
	minWindow time.Duration
}

// terms are one variant as clearing sees it, and of its score all that does not depend on when the window is.
type terms struct {
	// start and end in ticks, as clearing counts.
	start, end int64
	// begins and ends are how far behind the start of the window that is, length how long its lease is.
	begins, ends, length time.Duration
	// run and lease are its times in milliseconds.
	run, lease int64
	// declared score, and sum of the system's features that are known with the variant.
	declared, sum int64
	// endless: the window has no end for it, and what share of it the variant fills depends on the instant. open: the variant has none
	// either, and nothing of its score is known.
	endless, open bool
}

// known is what is known of a job that bids, for windows of a class.
type known struct {
	job   *index.Job
	class *window.Class
	// since when it waits.
	since quantity.Instant
	// belief in what the job declares.
	belief trust.Belief
	// slack of the job on the class at the instant 0, since when it shrinks; the longest time without a deadline.
	slack time.Duration
	// attained by the job, weight of its queue; moves: it grows by itself.
	attained, weight int64
	moves            bool
	// share caches the latest feature: attained by weight.
	share      struct{ is, of, by int64 }
	precedence int64
	// index of the job on the class, as far as it is believed; ends: what is bid for ends, or is weighed by time.
	index int64
	ends  bool
}

// know finds what is known of a job now, for a window of a class.
func (a *appraiser) know(now quantity.Instant, j *index.Job, c *window.Class, w *window.Window) known {
	record := j.Trust()
	k := known{
		job: j, class: c, since: j.Since(), belief: a.cfg.Trust().Belief(&record), slack: a.est.Laxity(j, c, 0), moves: j.Busy() > 0,
		precedence: index.Precedence(j.Spec().Priority), index: a.trusted(j, c), ends: a.cfg.PerTime || w.End() != quantity.Never,
	}
	k.attained, _, k.weight = j.Use(now)
	return k
}

// trusted is a job's index, reduced by trust. An agent's claims about its work decide how long the job seems, so its index counts by its
// record, or its queue's. Those of built-in kinds are learned from their runs.
func (a *appraiser) trusted(j *index.Job, c *window.Class) int64 {
	x := a.est.Index(j, c)
	if x == 0 || !j.Spec().External || a.cfg.Trusting {
		return x
	}
	record := j.Trust()
	return max(1, quantity.MulDiv(x, a.cfg.Trust().Rho(&record), score.One))
}

// terms of a bid for a window that is offered now, but for its ticks.
func (a *appraiser) terms(now quantity.Instant, t *bid, v *atomizer.View, k *known, offered *atomizer.Window) terms {
	length := t.length(offered.End)
	r := terms{
		begins: t.Start.Sub(now), ends: t.End.Sub(now), length: length, run: t.Run.Milliseconds(), lease: length.Milliseconds(),
		declared: t.Score,
		endless:  offered.End == quantity.Never, open: t.End == quantity.Never,
	}
	j, capacity := t.Job, k.class.Capacity[trp.Memory]
	features := a.cfg.Weights.Features(&score.Variant{
		Open: offered.Start, Shut: offered.End, Start: t.Start, End: t.Start.Add(length), Shortest: a.minWindow,
		Demand: t.Demand[trp.Memory], Capacity: capacity,
		Index: k.index, Profile: &j.Spec().Profile, Theta: j.Spec().Theta, From: t.Range.From, To: t.Range.To,
		Within: quantity.Amount(quantity.MulDiv(int64(capacity), trp.Unscaled, max(1, v.Scale()))),
	})
	features.Age, features.Share, features.Urgency = 0, 0, 0 // these are due
	if r.endless {
		features.Time = 0
	}
	r.sum = features.Sum(a.cfg.Weights.System)
	return r
}

// hourOf is an hour of a slice of the class, in memory-time.
func hourOf(c *window.Class) int64 { return policy.MemoryTime(c.Capacity, time.Hour) }

// prospects notes what is left of a bid's job, and how pressing its deadline is.
func (a *appraiser) prospects(now quantity.Instant, t *bid, v *atomizer.View, c *window.Class) {
	t.left = max(1, v.Left())
	if deadline := t.Job.Deadline(); deadline != quantity.Never {
		t.urgency = score.Laxity(a.est.Finish(t.Job, c, now), deadline)
	}
}

// appraise finds the worth of a bid that stands, whose queue's purse is full.
func (a *appraiser) appraise(now quantity.Instant, t *bid, s *window.Slice, w *window.Window, uncontended bool) {
	v, c, offered := t.Job.View(), s.Class(), a.est.Within(t.Job, s, now, w.End())
	a.prospects(now, t, &v, c)
	k := a.know(now, t.Job, c, w)
	if k.slack != math.MaxInt64 {
		k.slack += t.ahead
	}
	r := a.terms(now, t, &v, &k, &offered)
	t.worth = a.weigh(now, &k, &r, uncontended)
}

// weigh finds a variant's present weight, for a queue with a full purse. uncontended: nobody else waits for the slice.
func (a *appraiser) weigh(now quantity.Instant, k *known, t *terms, uncontended bool) (x worth) {
	x.calibrated = a.calibrated(k, t)
	switch m := a.cfg; {
	case m.Weights.Rates():
		sum := t.sum + a.due(now, k, t)
		x.total, x.rate = m.Weights.TotalOf(x.calibrated, sum), m.Weights.Rate(x.calibrated, sum, k.index, k.precedence)
		x.weight = score.Worth(x.rate, t.run, t.lease, k.ends)
		return x
	case uncontended:
		x.total = max(1, x.calibrated) // it is as the job itself likes best
	default:
		x.total = m.Weights.TotalOf(x.calibrated, t.sum+a.due(now, k, t))
	}
	x.weight = score.Weight(x.total, t.length, a.cfg.PerTime)
	if k.precedence != index.Precedence(0) {
		x.weight = quantity.MulDiv(x.weight, k.precedence, index.Precedence(0))
	}
	return x
}

// rate is the same as weigh's, which is all that counts of bids that are compared by it.
func (a *appraiser) rate(now quantity.Instant, k *known, t *terms) int64 {
	if w := &a.cfg.Weights; !w.ByIndex() {
		return w.Rate(a.calibrated(k, t), t.sum+a.due(now, k, t), k.index, k.precedence)
	}
	return a.cfg.Weights.Rate(0, 0, k.index, k.precedence)
}

// mostRate bounds the rate of a job with an index and a precedence.
func (a *appraiser) mostRate(x, precedence, fullness int64) int64 {
	return scaled(a.cfg.Weights.MostRate(x, precedence), fullness)
}

// calibrated is what a variant declares, as far as that is believed.
func (a *appraiser) calibrated(k *known, t *terms) int64 {
	if a.cfg.Trusting {
		return t.declared
	}
	return k.belief.In(t.declared)
}

// due is the sum of the system's features that depend on when the window is, and on what the job has had by then.
func (a *appraiser) due(now quantity.Instant, k *known, t *terms) (sum int64) {
	w := &a.cfg.Weights.System
	own := k.attained
	if k.moves {
		own, _, _ = k.job.Use(now)
	}
	if s := &k.share; own != s.of || k.weight != s.by {
		s.is, s.of, s.by = score.Share(own/k.weight, hourOf(k.class)), own, k.weight
	}
	sum = k.share.is * w.Share
	if w.Age > 0 {
		sum += score.Age(max(0, now.Sub(k.since))) * w.Age
	}
	if w.Urgency > 0 && k.slack != math.MaxInt64 {
		sum += score.Urgency(k.slack-now.Sub(0)) * w.Urgency
	}
	if t.endless && w.Time > 0 {
		sum += score.Time(t.length, quantity.Never.Sub(now)) * w.Time
	}
	return sum
}
