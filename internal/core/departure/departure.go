// Package departure is when a machine leaves its cluster for good: until when its time is sold, and when its head lets go of one that has
// left without a word. It knows no machine, link or clock.
package departure

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

const (
	// HandOver is how long before its end a machine is closed by default, so that what its last subjobs have left is at the head by then.
	HandOver = 10 * time.Second
	// Skew is how long after a machine's time its head lets go of it: as long as a home waits after a lease's end, which has the kill grace
	// in it, before it gives the claim up (zone.Config.Skew).
	Skew = 5 * time.Second
	// Silence is how long by default a machine whose end is not known may be silent after all that it was sold is over.
	Silence = 10 * time.Minute
	// Longest is how far ahead an end may be.
	Longest = 366 * 24 * time.Hour
)

// Stay is how long a machine belongs to its cluster. The zero value: until somebody removes it.
type Stay struct {
	// Ephemeral: it is gone for good once its daemon ends.
	Ephemeral bool
	// Until is when an ephemeral one is gone at the latest; 0: nobody knows.
	Until quantity.Instant
}

// Check refuses an end that is over, too near for anything to be sold before the hand-over, or beyond reason. Errors: Invalid.
func (s Stay) Check(now quantity.Instant, handOver time.Duration) error {
	left := s.Until.Sub(now)
	switch {
	case s.Until == 0:
		return nil
	case !s.Ephemeral:
		return errkind.Errorf(errkind.Invalid, "it has an end, at %s, and is not ephemeral", timeline.Clock(s.Until))
	case left <= 0:
		return errkind.Errorf(errkind.Invalid, "%s is over, by %v: it is %s now", timeline.Clock(s.Until), -left, timeline.Clock(now))
	case left <= handOver:
		return errkind.Errorf(errkind.Invalid, "%s is %v from now, and %v of that is kept for the hand-over: nothing could "+
			"be done before it", timeline.Clock(s.Until), left, handOver)
	case left > Longest:
		return errkind.Errorf(errkind.Invalid, "%s is more than %v from now", timeline.Clock(s.Until), Longest)
	}
	return nil
}

// Closes is when a machine that is gone at an instant is closed: all that it was sold ends by then.
func Closes(until quantity.Instant, handOver time.Duration) quantity.Instant {
	return max(1, until.Add(-handOver))
}

// Seen is what a head knows of a machine.
type Seen struct {
	// Up: it is linked now.
	Up bool
	// Heard is when it was heard last, or since when nothing could be heard because the head itself had not come up.
	Heard quantity.Instant
	// Sold is when the last claim on its slices ends; 0: there is none.
	Sold quantity.Instant
}

// LetGo is when a head removes a machine by itself; Never: it does not. silence is how long one whose end is not known may be silent.
func (s Stay) LetGo(m Seen, silence time.Duration) quantity.Instant {
	switch {
	case !s.Ephemeral:
		return quantity.Never
	case s.Until != 0:
		return s.Until.Add(Skew)
	case m.Up:
		return quantity.Never
	}
	return max(m.Heard, m.Sold).Add(silence)
}
