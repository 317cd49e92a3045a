package main

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// stopwatch tells the processor time of the calling thread, which the rest of the machine does not add to. The goroutine that uses
// it must stay on its thread.
type stopwatch struct {
	// cost of looking twice, which is in everything that is timed.
	cost time.Duration
}

func newStopwatch() stopwatch {
	runtime.LockOSThread()
	var s stopwatch
	looks := make([]time.Duration, 1001)
	for i := range looks {
		at := s.now()
		looks[i] = s.now() - at
	}
	slices.Sort(looks)
	s.cost = looks[len(looks)/2]
	return s
}

// now is the time so far.
func (stopwatch) now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // there is such a clock on every Linux
	}
	return time.Duration(t.Nano())
}

// since is how long something took that began at from.
func (s stopwatch) since(from time.Duration) time.Duration { return max(0, s.now()-from-s.cost) }
