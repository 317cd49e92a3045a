package zone

import (
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Credits are what queues pay with for what their jobs win; docs/crash-table.md has their row. A credit is a millisecond of a
// slice at a score of 1. Of each slice market.Config.Refill credits an hour are shared out by weight among the queues that have
// jobs. A queue holds them in its Standing, and they are counted up when they are looked at. A fact says what it has when
// something is to be paid; the price itself is in the claim, so that no crash comes between what is sold and what is paid.

// full is what a queue's purse holds, and is refilled by in market.PurseTime, as the cluster and the other queues now are.
func (z *Zone) full(q *Queue) int64 {
	return max(1, quantity.MulDiv(z.cfg.Market.Refill*int64(len(z.floor.Slices())), q.share(), max(q.share(), z.weights)))
}

// share is what a queue counts for among those with jobs.
func (q *Queue) share() int64 { return max(1, q.Weight) }

// refilled is a queue's standing with what time has brought it. A queue that never paid begins with a full purse.
func (z *Zone) refilled(now quantity.Instant, q *Queue) protocol.Standing {
	s, full := q.standing, z.full(q)
	s.Queue = q.Name
	if s.Refilled == 0 {
		s.Credits, s.Refilled = s.Credits+full, now
		return s
	}
	passed := min(now.Sub(s.Refilled), market.PurseTime)
	if more := quantity.MulDiv(full, int64(passed), int64(market.PurseTime)); more > 0 {
		s.Credits, s.Refilled = max(s.Credits, min(full, s.Credits+more)), now
	}
	return s
}

// purse is what a queue can still pay: what it has, less what it has offered in asks that are not answered yet.
func (z *Zone) purse(now quantity.Instant, q *Queue) int64 {
	return max(0, z.refilled(now, q).Credits-q.pledged)
}

// pay says what a queue has, in the step in which something is claimed for it at a price, and holds the price to it.
func (z *Zone) pay(now quantity.Instant, q *Queue, b *protocol.Bid, out *protocol.Out) {
	if b == nil || b.Price == 0 {
		return
	}
	s := z.refilled(now, q)
	b.Price = min(b.Price, s.Credits)
	z.fact(out, protocol.Fact{Kind: protocol.QueueCalibrated, Standing: &s})
}

// credit adds to what a queue has; what it pays is below 0.
func (z *Zone) credit(q *Queue, more int64) {
	if more == 0 {
		return
	}
	z.sum -= queueSum(q)
	q.standing.Credits += more
	z.sum += queueSum(q)
}

// populate keeps how many jobs without a verdict a queue has, and what all queues with any weigh together.
func (z *Zone) populate(q *Queue, more int) {
	if q.alive > 0 {
		z.weights -= q.share()
	}
	q.alive += more
	if q.alive > 0 {
		z.weights += q.share()
	}
}
