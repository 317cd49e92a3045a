package conservative

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// slot is the planned time of one task, waiting or running: [start, until) on devices of a class. until is the planned end
// but for a task that runs past it, or for no time at all: those take up a nanosecond. node and devices are set only where
// the plan is kept by device.
type slot struct {
	start, until, end quantity.Instant
	class             int
	node              int32
	devices           []planner.Device
}

// plan is what is taken when. There are two: by count, and by device.
type plan interface {
	// clear forgets everything.
	clear(now quantity.Instant)
	// forward forgets what is over.
	forward(now quantity.Instant)
	// earliest fills in s for a task on a class, from now on; s.class, s.start and, if it has them, the devices.
	earliest(now quantity.Instant, e *book.Entry, class int, s *slot)
	// take and give add and remove a slot's time from an instant on.
	take(e *book.Entry, s *slot, from quantity.Instant)
	give(e *book.Entry, s *slot, from quantity.Instant)
}

func duration(run int64) time.Duration { return time.Duration(run) }
