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
	// purseTime is the refill that a full purse holds. A queue's bids count as far as its purse is full, so that what it won
	// lately is soon paid back in what it wins next; docs/incentives.md has what longer ones leave to be gained.
	purseTime = time.Hour
	// leastScale, in parts per thousand, is what remains of the bids of a queue without credits: they still win where nobody
	// else wants the time, and the better of them before the worse.
	leastScale = 1
)

// full is what a queue's purse holds, and is refilled by in purseTime, as the cluster and the other queues now are.
func (z *Zone) full(q *queue) int64 {
	return max(1, quantity.MulDiv(z.cfg.Market.Refill*int64(len(z.slices)), q.share(), max(q.share(), z.weights)))
}

// share is what a queue counts for among those with jobs.
func (q *queue) share() int64 { return max(1, q.Weight) }

// refilled is a queue's standing with what time has brought it. A queue that never paid begins with a full purse.
func (z *Zone) refilled(now quantity.Instant, q *queue) protocol.Standing {
	s, full := q.standing, z.full(q)
	s.Queue = q.Name
	if s.Refilled == 0 {
		s.Credits, s.Refilled = s.Credits+full, now
		return s
	}
	passed := min(now.Sub(s.Refilled), purseTime)
	if more := quantity.MulDiv(full, int64(passed), int64(purseTime)); more > 0 {
		s.Credits, s.Refilled = max(s.Credits, min(full, s.Credits+more)), now
	}
	return s
}

// purse is what a queue can still pay: what it has, less what it has offered in asks that are not answered yet.
func (z *Zone) purse(now quantity.Instant, q *queue) int64 {
	return max(0, z.refilled(now, q).Credits-q.pledged)
}

// scale lowers the weights of the bids of queues that run short: they count as far as the queue's purse is full.
func (z *Zone) scale(now quantity.Instant) {
	if z.cfg.Market.Payment == market.Free {
		return
	}
	for i := range z.tenders {
		t := &z.tenders[i]
		purse, full := z.purse(now, t.job.q), z.full(t.job.q)
		if purse >= full || t.weight <= 0 {
			continue
		}
		t.weight = max(1, quantity.MulDiv(t.weight, max(quantity.MulDiv(purse, 1000, full), leastScale), 1000))
	}
}

// price of a tender that has won, in credits: never more than its queue can pay.
func (z *Zone) price(now quantity.Instant, t *tender) int64 {
	if t.price == 0 {
		return 0
	}
	credits := t.price / score.One
	if !z.cfg.Market.PerTime { // weights have no time in them, and who takes a window for longer pays for longer
		credits = quantity.MulDiv(t.price, min(t.end.Sub(t.Start), purseTime).Milliseconds(), score.One)
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
