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

// Counts of everything so far.
func (c *Cluster) Counts() *Counts { return &c.counts }

// area is an integral over time in 128 bits: ten thousand devices pass 63 bits within a day.
type area struct {
	hi, lo uint64
	since  quantity.Instant
}

// use changes what is busy by a task, and settles the area up to now.
func (c *Cluster) use(now quantity.Instant, k *task, sign int64) {
	c.settle(now, k.class)
	c.counts.Busy[k.class] += sign * int64(k.Devices) * int64(k.Share)
}

func (c *Cluster) settle(now quantity.Instant, class uint8) {
	a := &c.area[class]
	hi, lo := bits.Mul64(uint64(c.counts.Busy[class]), uint64(now-a.since))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi += hi + carry
	a.since = now
}

// Area is the device time used of a class up to now, in thousandths of a device times seconds, rounded down.
func (c *Cluster) Area(now quantity.Instant, class uint8) int64 {
	c.settle(now, class)
	q, _ := bits.Div64(c.area[class].hi, c.area[class].lo, 1e9)
	return int64(q)
}
