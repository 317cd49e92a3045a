package market

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// quote is what a job answers to a window: its variants that stand, and of their scores all that does not depend on when the window
// is, nor on what the job and its queue have had. In windows of a class whose end is
// not known a job answers the same as long as it is not marked (InvalidateJob): such a quote is kept. Soft state.
type quote struct {
	job   *Job
	name  job.ID
	class *Class
	till  *till
	// next is another one of the job, for another class. at is its place in the book, sitting when it was asked for last.
	next    *quote
	at      int
	sitting uint64
	// since when it waits, until is the last instant at which its deadline does not press yet, and it may be used; Never without a
	// deadline.
	since, until quantity.Instant
	// terms are of the variants that stand, and bids these variants themselves, but for their instants.
	terms []term
	bids  []bid
	// variants there were, denied of them; refusal is why there was none.
	variants, denied int64
	refusal          atomizer.Refusal
	// belief in what the job declares by its own record; without one it is its queue's.
	belief   trust.Belief
	recorded bool
	// slack of the job on the class at the instant 0, since when it shrinks; the longest time without a deadline.
	slack time.Duration
	// attained by the job; moves: it grows by itself.
	attained int64
	moves    bool
	// share is the feature, of what is attained by weight.
	share, shareOf, shareBy int64
	precedence              int64
	// index of the job on the class, as far as it is believed; ends: what is bid for ends, or is weighed by time.
	index int64
	ends  bool
}

// term is one variant as clearing sees it.
type term struct {
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

// till is what is read of a queue once in a sitting: while windows are cleared together, and nothing is sold yet.
type till struct {
	sitting, believed uint64
	// weight of the queue, and how full its purse is in parts per thousand.
	weight, fullness int64
	// belief in jobs without a record of their own, read in the sitting believed.
	belief trust.Belief
}

// quoteOf is the job's answer to a window as it is offered now: one that is kept, or a new one.
func (f *Floor) quoteOf(now quantity.Instant, j *Job, o *offer, w *window) *quote {
	c := o.slice.class
	lasting := w.end == quantity.Never && j.indexed && (o.slice.Safe(now) == quantity.Never || !j.Loses())
	if lasting {
		for q := j.quotes; q != nil; q = q.next {
			if q.class == c && now <= q.until {
				q.sitting = f.sitting
				return q
			}
		}
	}
	q := f.book.blank()
	f.fill(now, q, j, o, w)
	q.sitting = f.sitting
	if lasting && now <= q.until && f.book.keep(q, 2*f.cfg.Market.Audience*len(f.classes)) {
		q.next, j.quotes = j.quotes, q
	} else {
		f.fleeting = append(f.fleeting, q)
	}
	return q
}

// fill has the job propose and verifies what it says.
func (f *Floor) fill(now quantity.Instant, q *quote, j *Job, o *offer, w *window) {
	c, m := o.slice.class, f.cfg.Market
	*q = quote{job: j, name: j.Name(), class: c, till: f.tillOf(j), terms: q.terms[:0], bids: q.bids[:0], since: j.since(),
		until: quantity.Never, precedence: precedence(j.Spec().Priority)}
	if q.refusal = f.proposals(now, j, o, w); len(f.variants) == 0 {
		return
	}
	record := j.Trust()
	q.recorded, q.belief = record.Seen > 0, m.Trust().Belief(&record)
	q.attained, _, _ = j.Use(now)
	q.moves = j.Busy() > 0
	v := j.View()
	if deadline := j.deadline(); deadline != quantity.Never {
		q.until = deadline.Add(-score.SlackFull - j.finish(now, c).Sub(now))
	}
	q.slack = f.laxity(j, c, 0)
	offered := f.Within(j, o.slice, now, w.end)
	q.index, q.ends = f.trusted(j, c), m.PerTime || w.end != quantity.Never
	for i := range f.variants {
		x := &f.variants[i]
		x.Window = w.id
		q.variants++
		t := bid{Variant: *x, job: j, quoted: true}
		if f.stands(now, &t, &v, o, w, q.bids) != "" {
			q.denied++
			continue
		}
		f.prospects(now, &t, &v, c)
		piece := f.piece(&t, &v, c, &offered)
		features := m.Weights.Features(&piece)
		features.Age, features.Share, features.Urgency = 0, 0, 0
		r := term{
			begins: t.Start.Sub(now), ends: t.end.Sub(now), length: t.length(offered.End), run: t.Run.Milliseconds(), declared: t.Score,
			endless: offered.End == quantity.Never, open: t.end == quantity.Never,
		}
		r.lease = r.length.Milliseconds()
		if r.endless {
			features.Time = 0
		}
		r.sum = features.Sum(m.Weights.System)
		r.start, r.end = f.ticks(now, &t)
		q.terms, q.bids = append(q.terms, r), append(q.bids, t)
	}
}

// span is from when to when a variant of the quote would run in a window that begins now.
func (t *term) span(now quantity.Instant) (start, end quantity.Instant) {
	if t.open {
		return now.Add(t.begins), quantity.Never
	}
	return now.Add(t.begins), now.Add(t.ends)
}

// bid is a variant of the quote in a window that begins now.
func (q *quote) bid(i int, now quantity.Instant, w *window) bid {
	t := q.bids[i]
	t.Window = w.id
	t.Start, t.end = q.terms[i].span(now)
	return t
}

// reckoning is what the weights of variants of one window depend on beside them.
type reckoning struct {
	now         quantity.Instant
	offer       *offer
	uncontended bool
}

// weigh finds what a variant of a quote is worth in a window, as value and scale do.
func (f *Floor) weigh(r *reckoning, q *quote, i int) (calibrated, total, weight int64) {
	t, m := &q.terms[i], f.cfg.Market
	if t.open {
		w := r.offer.find()
		b := q.bid(i, r.now, w)
		f.value(r.now, &b, r.offer, w, r.uncontended)
		return b.calibrated, b.total, scaled(b.weight, q.till.fullness)
	}
	calibrated = f.calibrated(q, t)
	switch {
	case m.Weights.Rates():
		sum := t.sum + f.due(r, q, t)
		rate := m.Weights.Rate(calibrated, sum, q.index, q.precedence)
		return calibrated, m.Weights.TotalOf(calibrated, sum), scaled(score.Worth(rate, t.run, t.lease, q.ends), q.till.fullness)
	case r.uncontended:
		total = max(1, calibrated)
	default:
		total = m.Weights.TotalOf(calibrated, t.sum+f.due(r, q, t))
	}
	weight = score.Weight(total, t.length, m.PerTime)
	if q.precedence != precedence(0) {
		weight = quantity.MulDiv(weight, q.precedence, precedence(0))
	}
	return calibrated, total, scaled(weight, q.till.fullness)
}

// calibrated is what a variant declares, as far as that is believed.
func (f *Floor) calibrated(q *quote, t *term) int64 {
	switch {
	case f.cfg.Market.Trusting:
		return t.declared
	case q.recorded:
		return q.belief.In(t.declared)
	}
	return q.till.belief.In(t.declared)
}

// rate is what a millisecond of the run of a quote's variant is worth, where weights are rates.
func (f *Floor) rate(r *reckoning, q *quote, i int) int64 {
	t, m := &q.terms[i], f.cfg.Market
	if t.open {
		w := r.offer.find()
		b := q.bid(i, r.now, w)
		f.value(r.now, &b, r.offer, w, false)
		return scaled(b.rate, q.till.fullness)
	}
	rate := max(1, min(q.index, score.MaxWeight))
	if !m.Weights.ByIndex() {
		rate = m.Weights.Rate(f.calibrated(q, t), t.sum+f.due(r, q, t), q.index, q.precedence)
	}
	return scaled(rate, q.till.fullness)
}

// due is the sum of the system's features that depend on when the window is, and on what the job has had by then.
func (f *Floor) due(r *reckoning, q *quote, t *term) (sum int64) {
	w := &f.cfg.Market.Weights.System
	own := q.attained
	if q.moves {
		own, _, _ = q.job.Use(r.now)
	}
	if own != q.shareOf || q.till.weight != q.shareBy {
		q.share, q.shareOf, q.shareBy = score.Share(own/q.till.weight, q.class.hour()), own, q.till.weight
	}
	sum = q.share * w.Share
	if w.Age > 0 {
		sum += score.Age(max(0, r.now.Sub(q.since))) * w.Age
	}
	if w.Urgency > 0 && q.slack != math.MaxInt64 {
		sum += score.Urgency(q.slack-r.now.Sub(0)) * w.Urgency
	}
	if t.endless && w.Time > 0 {
		sum += score.Time(t.length, quantity.Never.Sub(r.now)) * w.Time
	}
	return sum
}

// tillOf is what is kept of a job's queue.
func (f *Floor) tillOf(j *Job) *till {
	name, _ := j.Queue()
	t := f.tills[name]
	if t == nil {
		t = &till{}
		f.tills[name] = t
	}
	return t
}

// read brings what is kept of a quote's queue up to date.
func (f *Floor) read(now quantity.Instant, q *quote) {
	t := q.till
	if t.sitting != f.sitting {
		t.sitting = f.sitting
		_, _, t.weight = q.job.Use(now)
		t.fullness = f.fullness(now, q.job)
	}
	if !q.recorded && t.believed != f.sitting {
		t.believed = f.sitting
		record := q.job.Trust()
		t.belief = f.cfg.Market.Trust().Belief(&record)
	}
}
