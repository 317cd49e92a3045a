package auction

import (
	"time"

	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
)

// worth is what a bid counts for.
type worth struct {
	// calibrated score of the job, total of both sides, and the weight it is cleared with.
	calibrated, total, weight int64
	// rate is what a millisecond of it is worth, where scores are logarithms of that.
	rate int64
}

// bid is a variant that stands: verified, calibrated and scored.
type bid struct {
	variant.Verified
	// caller it came from; nil if its atomizer answered by itself.
	caller *agents.Caller
	worth
	// left is how much work its job has, urgency how pressing its deadline is.
	left, urgency int64
	// ahead is how long the work of its job takes that is not done yet, and will be when it begins.
	ahead time.Duration
	// price in the measure of weights; free: it goes first because its job has waited too long, and pays nothing.
	price int64
	free  bool
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
	// PurseTime is the refill that a full purse holds. A queue's bids count as far as its purse is full, so that what it won
	// lately is soon paid back in what it wins next; docs/incentives.md has what longer ones leave to be gained.
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
