package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Credits are what queues pay with for what their jobs win; docs/crash-table.md has their row. A credit is a millisecond of a
// slice at a score of 1. Of each slice market.Config.Refill credits an hour are shared out by weight among the queues that have
// jobs. A queue holds them in its Standing, and they are counted up when they are looked at. A fact says what it has when
// something is to be paid; the price itself is in the claim, so that no crash comes between what is sold and what is paid.

const (
	// savedHours of refill are the most that a queue saves up: enough for a night's jobs, too little to own a day.
	savedHours = 4
	// worthAlone is what a bid is worth in time where it is weighed by its score alone.
	worthAlone = 10 * time.Minute
	// leastScale, in parts per thousand, is what remains of the bids of a queue without credits: they still win where nobody
	// else wants the time, and the better of them before the worse.
	leastScale = 1
)

// hourly is what a queue is refilled by in an hour, as the cluster and the other queues now are.
func (z *Zone) hourly(q *queue) int64 {
	return max(1, quantity.MulDiv(z.cfg.Market.Refill*int64(len(z.slices)), q.share(), max(q.share(), z.weights)))
}

// share is what a queue counts for among those with jobs.
func (q *queue) share() int64 { return max(1, q.Weight) }

// refilled is a queue's standing with what time has brought it. A queue that never paid begins with an hour's worth.
func (z *Zone) refilled(now quantity.Instant, q *queue) protocol.Standing {
	s, hourly := q.standing, z.hourly(q)
	s.Queue = q.Name
	if s.Refilled == 0 {
		s.Credits, s.Refilled = s.Credits+hourly, now
		return s
	}
	most := savedHours * hourly
	passed := min(now.Sub(s.Refilled), savedHours*time.Hour)
	if more := quantity.MulDiv(hourly, int64(passed), int64(time.Hour)); more > 0 {
		s.Credits, s.Refilled = max(s.Credits, min(most, s.Credits+more)), now
	}
	return s
}

// purse is what a queue can still pay: what it has, less what it has offered in asks that are not answered yet.
func (z *Zone) purse(now quantity.Instant, q *queue) int64 {
	return max(0, z.refilled(now, q).Credits-q.pledged)
}

// scale lowers the weights of the bids of queues that run short: in proportion to what they have left of an hour's refill.
func (z *Zone) scale(now quantity.Instant) {
	if z.cfg.Market.Payment == market.Free {
		return
	}
	for i := range z.tenders {
		t := &z.tenders[i]
		purse, hourly := z.purse(now, t.job.q), z.hourly(t.job.q)
		if purse >= hourly || t.weight <= 0 {
			continue
		}
		t.weight = max(1, quantity.MulDiv(t.weight, max(quantity.MulDiv(purse, 1000, hourly), leastScale), 1000))
	}
}

// price of a tender that has won, in credits: never more than its queue can pay.
func (z *Zone) price(now quantity.Instant, t *tender) int64 {
	if t.price == 0 {
		return 0
	}
	credits := t.price / score.One
	if !z.cfg.Market.PerTime {
		credits = quantity.MulDiv(t.price, worthAlone.Milliseconds(), score.One)
	}
	return min(credits, z.purse(now, t.job.q))
}

// pay says what a queue has, in the step in which something is claimed for it at a price, and holds the price to it.
func (z *Zone) pay(now quantity.Instant, q *queue, b *protocol.Bid, out *protocol.Out) {
	if b == nil || b.Price == 0 {
		return
	}
	s := z.refilled(now, q)
	b.Price = min(b.Price, s.Credits)
	z.fact(out, protocol.Fact{Kind: protocol.QueueCalibrated, Standing: &s})
}

// credit adds to what a queue has; what it pays is below 0.
func (z *Zone) credit(q *queue, more int64) {
	if more == 0 {
		return
	}
	z.sum -= queueSum(q)
	q.standing.Credits += more
	z.sum += queueSum(q)
}

// populate keeps how many jobs without a verdict a queue has, and what all queues with any weigh together.
func (z *Zone) populate(q *queue, more int) {
	if q.alive > 0 {
		z.weights -= q.share()
	}
	q.alive += more
	if q.alive > 0 {
		z.weights += q.share()
	}
}
