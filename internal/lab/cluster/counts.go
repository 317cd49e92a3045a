package cluster

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Counts is what the actor has seen.
type Counts struct {
	Arrived, Started, Preempted, Returned, Cancelled, Never, Ticks int64
	// Ended by outcome.
	Ended [outcomes]int64
	// Waiting and Running tasks now; a task on its way out after Preempt still runs.
	Waiting, Running int64
	// Devices there are of each class, and Busy thousandths of them now.
	Devices, Busy [planner.MaxClasses]int64
	// Waits counts starts by how long the task had waited since it arrived or returned: Waits[i] from 2^(i-1) to below
	// 2^i milliseconds, Waits[0] below one.
	Waits [48]int64
}

// area is an integral over time in 128 bits: ten thousand devices pass 63 bits within a day.
type area struct {
	hi, lo uint64
	since  quantity.Instant
}

// tally is the counts, with what was busy over time. Invariant: the area of a class is that of Busy up to since.
type tally struct {
	Counts
	area [planner.MaxClasses]area
}

// use changes what is busy of a class by so many thousandths, and settles the area up to now.
func (t *tally) use(now quantity.Instant, class uint8, by int64) {
	t.settle(now, class)
	t.Busy[class] += by
}

func (t *tally) settle(now quantity.Instant, class uint8) {
	a := &t.area[class]
	hi, lo := bits.Mul64(uint64(t.Busy[class]), uint64(now-a.since))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi += hi + carry
	a.since = now
}

// used is the area of a class up to now, in thousandths of a device times seconds, rounded down.
func (t *tally) used(now quantity.Instant, class uint8) int64 {
	t.settle(now, class)
	q, _ := bits.Div64(t.area[class].hi, t.area[class].lo, 1e9)
	return int64(q)
}
