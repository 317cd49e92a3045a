package auction

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// quoter makes jobs of built-in kinds answer. Invariant: a cached quote is what the job would answer now.
type quoter struct {
	appraiser
	purses purses
	board  *window.Board
	book   book
	// accounts are of queues, by name; clearing counts those of windows that are cleared together.
	accounts map[string]*account
	clearing uint64
	// fleeting are the quotes of this clearing that are not kept.
	fleeting []*quote
	// variants is room for what one job proposes.
	variants []protocol.Variant
}

// begin begins a clearing, end ends it.
func (x *quoter) begin() { x.clearing++ }
func (x *quoter) end() {
	for i, q := range x.fleeting {
		x.book.release(q)
		x.fleeting[i] = nil
	}
	x.fleeting = x.fleeting[:0]
}

// quote is the job's answer to a window as it is offered now: one that is kept, or a new one.
func (x *quoter) quote(now quantity.Instant, j *index.Job, o *agents.Offer, w *window.Window) *quote {
	c, kept := o.Slice.Class(), recordOf(j)
	lasting := w.End() == quantity.Never && j.Entry().Indexed() && (o.Slice.Safe(now) == quantity.Never || !j.Loses())
	if lasting {
		for q := kept.quotes; q != nil; q = q.next {
			if q.class == c && now <= q.until {
				q.clearing = x.clearing
				return q
			}
		}
	}
	q := x.book.blank()
	x.fill(now, q, j, o, w)
	q.clearing = x.clearing
	if lasting && now <= q.until && x.book.keep(q, 2*x.cfg.Audience*len(x.board.Classes())) {
		q.next, kept.quotes = kept.quotes, q
	} else {
		x.fleeting = append(x.fleeting, q)
	}
	return q
}

// fill has the job propose and verifies what it says.
func (x *quoter) fill(now quantity.Instant, q *quote, j *index.Job, o *agents.Offer, w *window.Window) {
	c := o.Slice.Class()
	*q = quote{name: j.Name(), queue: x.account(j), terms: q.terms[:0], bids: q.bids[:0], until: quantity.Never}
	q.job, q.class = j, c
	if q.refusal = x.propose(now, j, o, w); len(x.variants) == 0 {
		return
	}
	q.known = x.know(now, j, c, w)
	q.recorded = j.Trust().Seen > 0
	if deadline := j.Deadline(); deadline != quantity.Never {
		q.until = deadline.Add(-score.SlackFull - x.est.Finish(j, c, now).Sub(now))
	}
	v, offered := j.View(), x.est.Within(j, o.Slice, now, w.End())
	for i := range x.variants {
		x.variants[i].Window = w.ID()
		q.variants++
		t := bid{quoted: true}
		t.Variant, t.Job = x.variants[i], j
		if x.denial(now, &t, &v, o, w, q.bids) != "" {
			q.denied++
			continue
		}
		x.prospects(now, &t, &v, c)
		r := x.terms(now, &t, &v, &q.known, &offered)
		r.start, r.end = t.ticks(now, x.est.Horizon())
		q.terms, q.bids = append(q.terms, r), append(q.bids, t)
	}
}

// propose lets a job's atomizer answer for a window, into variants; if it is not interested it says why.
func (x *quoter) propose(now quantity.Instant, j *index.Job, o *agents.Offer, w *window.Window) atomizer.Refusal {
	x.variants = x.variants[:0]
	if index.Wide(j.Spec()) {
		return index.RefuseWide(j.Spec())
	}
	view, offered := j.View(), x.est.Within(j, o.Slice, now, w.End())
	x.variants = atomizer.Propose(&view, offered, x.cfg.Variants, now, x.variants)
	if len(x.variants) > 0 {
		return atomizer.Refusal{}
	}
	p, refusal := x.est.Fit(j, o.Slice.Class(), now, w.End())
	if refusal.Why == atomizer.Interested {
		// The last resort of a job whose usual run time no longer fits: the whole window for its least useful piece.
		x.variants = append(x.variants, protocol.Variant{ID: 1, Range: p.Range, Start: now, Run: p.Run, Wall: p.Wall, Demand: p.Demand})
	}
	return refusal
}

// denial completes a bid (variant.Verify fills in its end, speed and demand), beside others of the same job, and returns why it is denied,
// empty if it is valid.
func (x *quoter) denial(now quantity.Instant, t *bid, view *atomizer.View, o *agents.Offer, w *window.Window, others []bid) string {
	if why := t.Verify(now, x.est, view, o.Slice, w); why != "" {
		return why
	}
	for i := range others {
		other := &others[i]
		switch {
		case other.ID == t.ID:
			return "another variant has the same id"
		case other.Range.Overlaps(t.Range) && (other.End <= t.Start || t.End <= other.Start):
			return "it is apart in time from another variant of the same work: both could be won, and the work sold twice"
		}
	}
	return ""
}

// account is what is kept of a job's queue.
func (x *quoter) account(j *index.Job) *account {
	name, _ := j.Queue()
	t := x.accounts[name]
	if t == nil {
		t = &account{}
		x.accounts[name] = t
	}
	return t
}

// read brings what is known of a quote's queue up to date.
func (x *quoter) read(now quantity.Instant, q *quote) {
	t := q.queue
	if t.clearing != x.clearing {
		t.clearing = x.clearing
		_, _, t.weight = q.job.Use(now)
		t.fullness = x.purses.fullness(now, q.job)
	}
	q.weight = t.weight
	if q.recorded {
		return
	}
	if t.believed != x.clearing {
		t.believed = x.clearing
		record := q.job.Trust()
		t.belief = x.cfg.Trust().Belief(&record)
	}
	q.belief = t.belief
}

// worth of a variant of a quote that was read, in a window.
func (x *quoter) worth(now quantity.Instant, q *quote, i int, o *agents.Offer, uncontended bool) worth {
	t := &q.terms[i]
	w := x.weigh(now, &q.known, x.asOf(now, q, i, t, o), uncontended)
	w.weight = scaled(w.weight, q.queue.fullness)
	return w
}

// rateOf is the most that a variant of a quote that was read is worth in a millisecond of its run.
func (x *quoter) rateOf(now quantity.Instant, q *quote, o *agents.Offer) (best int64) {
	for i := range q.terms {
		best = max(best, scaled(x.rate(now, &q.known, x.asOf(now, q, i, &q.terms[i], o)), q.queue.fullness))
	}
	return best
}

// asOf are the terms of a variant of a quote as they are now: of one without an end they depend on the instant.
func (x *quoter) asOf(now quantity.Instant, q *quote, i int, t *terms, o *agents.Offer) *terms {
	if !t.open {
		return t
	}
	w, v := o.Find(), q.job.View()
	b, offered := q.bid(i, now, w), x.est.Within(q.job, o.Slice, now, w.End())
	is := x.terms(now, &b, &v, &q.known, &offered)
	return &is
}
