// Package skew is clocks that are off.
package skew

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Clock is a node's own, in whose time its actor lives and its leases end. It shows the true time plus an offset, and
// runs fast or slow. The zero value is right.
type Clock struct {
	// since is when it was last set; drift counts from there.
	since  quantity.Instant
	offset time.Duration
	ppm    int64
	// floor is what it showed when it was last set: it waits there rather than go back, as the live shell's does.
	floor quantity.Instant
}

// New is a clock that shows the true time plus an offset since an instant, and runs ppm parts per million fast.
func New(since quantity.Instant, offset time.Duration, ppm int64) Clock {
	return Clock{since: since, offset: offset, ppm: ppm}
}

// Shows is the node's time at a true instant, which is not before the clock was last set.
func (c *Clock) Shows(t quantity.Instant) quantity.Instant {
	if *c == (Clock{}) || t == quantity.Never {
		return t
	}
	return max(c.floor, c.plain(t))
}

func (c *Clock) plain(t quantity.Instant) quantity.Instant {
	d := int64(t - c.since)
	return t.Add(c.offset + time.Duration(d/1e6*c.ppm+d%1e6*c.ppm/1e6))
}

// When is the first true instant at which the clock shows l or later.
func (c *Clock) When(l quantity.Instant) quantity.Instant {
	if *c == (Clock{}) || l == quantity.Never {
		return l
	}
	if l <= c.Shows(c.since) {
		return c.since
	}
	d := int64(l.Add(-c.offset) - c.since)
	t := max(c.since, c.since+quantity.Instant(d-d/(1e6+c.ppm)*c.ppm-d%(1e6+c.ppm)*c.ppm/(1e6+c.ppm)))
	for c.Shows(t) < l { // rounding: a step or two
		t++
	}
	for t > c.since && c.Shows(t-1) >= l {
		t--
	}
	return t
}

// Set makes the clock show the true time plus offset from now on, and run ppm parts per million fast; if that is earlier than what it
// shows, it stops until then.
func (c *Clock) Set(now quantity.Instant, offset time.Duration, ppm int64) {
	*c = Clock{since: now, offset: offset, ppm: ppm, floor: c.Shows(now)}
}
