package starvation

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Budget is what the late may be given before others: a token bucket that fills with a share of the capacity, and holds what comes in in a
// Burst. It may be overdrawn, and is paid back before anything else is given. All of it is in milliseconds of a slice times its speed in
// parts per thousand, and exact: what is in it at an instant does not depend on how often it was looked at before. The zero value has had
// nothing yet.
//
// So in any stretch of time T what is given is at most Share x Capacity x (T + Burst), and one grant more.
type Budget struct {
	// share of the capacity in parts per thousand, capacity the speeds of all slices together.
	share, capacity int64
	// credit, below 0 if it is overdrawn; part is the fraction below one, in thousandths.
	credit int64
	part   uint64
	// at is how far it has been filled, a whole number of milliseconds after it began; 0: it has not begun.
	at quantity.Instant
}

// Burst is the longest time for which the budget keeps what was not given.
const Burst = 24 * time.Hour

// millisecond of an Instant.
const millisecond = quantity.Instant(time.Millisecond)

// SetShare sets the share of the capacity in parts per thousand.
func (b *Budget) SetShare(share int64) { b.share = share }

// Capacity adds the speed of slices that have come or gone to what fills the budget from the instant up to which it is filled.
func (b *Budget) Capacity(more int64) { b.capacity += more }

// Fill brings the budget up to an instant.
func (b *Budget) Fill(now quantity.Instant) {
	if b.at == 0 {
		b.at = now
	}
	for ms := int64((now - b.at) / millisecond); ms > 0; {
		step := min(ms, Burst.Milliseconds())
		b.add(step)
		b.at += quantity.Instant(step) * millisecond
		if ms -= step; b.credit >= b.full() {
			b.at += quantity.Instant(ms) * millisecond
			ms = 0
		}
	}
}

// add adds what comes in in some milliseconds, at most a Burst of them.
func (b *Budget) add(ms int64) {
	hi, lo := bits.Mul64(uint64(ms)*uint64(b.capacity), uint64(b.share))
	lo, carry := bits.Add64(lo, b.part, 0)
	more, part := bits.Div64(hi+carry, lo, 1000)
	if b.credit, b.part = b.credit+int64(more), part; b.credit >= b.full() {
		b.credit, b.part = b.full(), 0
	}
}

// full is the most that the budget holds.
func (b *Budget) full() int64 {
	return quantity.MulDiv(b.capacity*Burst.Milliseconds(), b.share, 1000)
}

// Credit is how much the budget holds now.
func (b *Budget) Credit() int64 { return b.credit }

// Spend takes out what something costs, whether it is there or not; what was not used comes back as a negative cost.
func (b *Budget) Spend(cost int64) { b.credit = min(b.credit-cost, b.full()) }

// Solvent is when credit exceeds the cost if nothing is spent. It is never late; it may be early, but where credit lacks now it is at least
// a millisecond after the last Fill.
func (b *Budget) Solvent(cost int64) quantity.Instant {
	switch rate := b.capacity * b.share; {
	case b.credit > cost:
		return b.at
	case rate <= 0 || cost >= b.full():
		return quantity.Never
	default:
		return b.at.Add(time.Duration(min(max(1, quantity.MulDiv(cost-b.credit, 1000, rate)), longest.Milliseconds())) * time.Millisecond)
	}
}

// Cost of a slice of a speed in parts per thousand for a time, which is counted up to whole milliseconds. What has no known end costs as
// much as a Burst.
func Cost(d time.Duration, speed int64) int64 {
	switch {
	case d < 0:
		return 0
	case d > longest:
		d = Burst
	}
	return int64((d+time.Millisecond-1)/time.Millisecond) * max(1, speed)
}

// longest bounds what one grant can cost, so that sums stay within 63 bits.
const longest = 10 * 365 * 24 * time.Hour
