package loop

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Clock is the actors' time: the wall clock, except that it never goes back. When somebody sets the wall clock back,
// time goes on from where it was at its own pace until the daemon is started again. It belongs to the goroutine of the loop.
type Clock struct {
	last quantity.Instant
	read time.Time
	// started is the first reading.
	started quantity.Instant
}

// Started is when the clock was first read, which is when the daemon began; 0 before that.
func (c *Clock) Started() quantity.Instant { return c.started }

// Now is the time.
func (c *Clock) Now() quantity.Instant {
	t := time.Now()
	w := quantity.At(t)
	if w < c.last {
		w = c.last.Add(max(0, t.Sub(c.read))) // Sub uses the monotonic reading
	}
	if c.started == 0 {
		c.started = w
	}
	c.last, c.read = w, t
	return w
}
