package home

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Credits are what queues pay with for what their jobs win; docs/crash-table.md has their row. A credit is a millisecond of a
// slice at a score of 1. Of each slice Config.Refill credits are shared out in Config.PurseTime by weight among the queues that have
// jobs. A queue holds them in its Standing, and they are counted up when they are looked at. A fact says what it has when
// something is to be paid; the price itself is in the claim, so that no crash comes between what is sold and what is paid.

// full is what a queue's purse holds, and is refilled by in Config.PurseTime, as the cluster and the other queues now are.
func (h *Ledger) full(q *Queue) int64 {
	return max(1, quantity.MulDiv(h.cfg.Refill*int64(h.supply.Slices()), q.share(), max(q.share(), h.weights)))
}

// share is what a queue counts for among those with jobs.
func (q *Queue) share() int64 { return max(1, q.Weight) }

// refilled is a queue's standing with what time has brought it. A queue that never paid begins with a full purse.
func (h *Ledger) refilled(now quantity.Instant, q *Queue) protocol.Standing {
	s, full := q.standing, h.full(q)
	s.Queue = q.Name
	if s.Refilled == 0 {
		s.Credits, s.Refilled = s.Credits+full, now
		return s
	}
	passed := min(now.Sub(s.Refilled), h.cfg.PurseTime)
	if more := quantity.MulDiv(full, int64(passed), int64(h.cfg.PurseTime)); more > 0 {
		s.Credits, s.Refilled = max(s.Credits, min(full, s.Credits+more)), now
	}
	return s
}

// Purse is what a queue can still pay: what it has, less what it has offered in asks that are not answered yet; and what it holds
// when it is full.
func (h *Ledger) Purse(now quantity.Instant, q *Queue) (has, full int64) {
	pledged := q.pledged
	if h.plain != nil {
		pledged = h.pledgedPlainly(q)
	}
	return max(0, h.refilled(now, q).Credits-pledged), h.full(q)
}

// Credits is what a queue has.
func (h *Ledger) Credits(now quantity.Instant, q *Queue) int64 { return h.refilled(now, q).Credits }

// pay says what a queue has, in the step in which something is claimed for it at a price, and holds the price to it.
func (h *Ledger) pay(now quantity.Instant, q *Queue, b *protocol.Bid, out *protocol.Out) {
	if b == nil || b.Price == 0 {
		return
	}
	s := h.refilled(now, q)
	b.Price = min(b.Price, s.Credits)
	h.fact(out, protocol.Fact{Kind: protocol.QueueCalibrated, Standing: &s})
}

// credit adds to what a queue has; what it pays is below 0.
func (h *Ledger) credit(q *Queue, more int64) {
	if more == 0 {
		return
	}
	h.sum -= queueSum(q)
	q.standing.Credits += more
	h.sum += queueSum(q)
}

// populate keeps how many jobs without a verdict a queue has, and what all queues with any weigh together.
func (h *Ledger) populate(q *Queue, more int) {
	if q.alive > 0 {
		h.weights -= q.share()
	}
	q.alive += more
	if q.alive > 0 {
		h.weights += q.share()
	}
}
