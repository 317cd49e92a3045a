package loop

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/clock"
)

// Clock is the actors' time, which never goes back. It belongs to the goroutine of the loop.
type Clock struct {
	// Source is what it is read from; nil: the wall clock, as clock.Steady has it.
	Source func() time.Time

	wall clock.Steady
	last quantity.Instant
	// started is the first reading.
	started quantity.Instant
}

// Started is when the clock was first read, which is when the daemon began; 0 before that.
func (c *Clock) Started() quantity.Instant { return c.started }

// Now is the time.
func (c *Clock) Now() quantity.Instant {
	if c.Source == nil {
		c.Source = c.wall.Now
	}
	c.last = max(c.last, quantity.At(c.Source()))
	if c.started == 0 {
		c.started = c.last
	}
	return c.last
}
