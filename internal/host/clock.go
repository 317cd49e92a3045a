package host

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// clock is the actors' time: the wall clock, except that it never goes back. When somebody sets the wall clock back,
// time goes on from where it was at its own pace until the daemon is started again.
type clock struct {
	last quantity.Instant
	read time.Time
}

func (c *clock) now() quantity.Instant {
	t := time.Now()
	w := quantity.At(t)
	if w < c.last {
		w = c.last.Add(max(0, t.Sub(c.read))) // Sub uses the monotonic reading
	}
	c.last, c.read = w, t
	return w
}
