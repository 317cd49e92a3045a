package auction

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

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
	// share is the latest feature that was found, of what is attained by weight.
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

// trusted is the index of a job as far as it is believed. What an agent says of its work decides how long the job seems, and so its index
// counts by its record, or its queue's. What built-in kinds say of theirs is learned from what they ran.
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

// weigh finds what a variant is worth now, of a queue whose purse is full. uncontended: nobody else waits for the slice.
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
