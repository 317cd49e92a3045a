package head

import "time"

// watch calls a function when a call makes no progress for a while. It does so for good: what it ends is not begun again.
type watch struct {
	timer *time.Timer
	limit time.Duration
}

// newWatch returns a watch that runs.
func newWatch(limit time.Duration, end func()) *watch {
	return &watch{timer: time.AfterFunc(limit, end), limit: limit}
}

// start begins to count anew.
func (w *watch) start() { w.timer.Reset(w.limit) }

// stop counts no more until start.
func (w *watch) stop() { w.timer.Stop() }
