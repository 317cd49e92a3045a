// Package migrate is the baseline that stops running work: least attained service with discrete levels, as Tiresias (Gu et
// al., NSDI 2019) has it, and migration to a faster class of devices, as Gandiva (Xiao et al., OSDI 2018) has it. How work is
// stopped, moved and set going again is package preempt's.
//
// A task's level follows from the device time that it has had: below 15 minutes it is 0, and each next level is four times
// as wide, up to level 5 from 64 hours on (Tiresias uses two levels whose border is tuned to the trace; these need no
// tuning). Whoever waits is served by level, then by first arrival, and may stop running tasks of higher levels.
//
// Tasks that are Fixed are never stopped; the schedulers named assume that every job can be.
//
// Against starving: a task that has run and then waits for eight times as long as it ran begins again at level 0 (Tiresias'
// PROMOTEKNOB).
package migrate

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/preempt"
)

const (
	// levels, and the device time at which the second begins.
	levels = 6
	first  = 15 * time.Minute
	// knob is how many times its run a task waits before it begins at level 0 again.
	knob = 8
)

// Kind is the kind.
func Kind() planner.Kind {
	return preempt.Kind("migrate", "checkpoint, preempt and migrate: least attained service (Tiresias, NSDI'19) with moves to faster "+
		"classes (Gandiva, OSDI'18)",
		func(planner.Options) preempt.Rule {
			return preempt.Rule{Rank: rank, Rises: rises, Anew: anew, Moves: true}
		})
}

func rank(now quantity.Instant, e *book.Entry, r *preempt.Record) int64 {
	return int64(level(r.Had(now, e)))
}

// level of a device time.
func level(t time.Duration) int {
	n := 0
	for border := first; n < levels-1 && t >= border; border *= 4 {
		n++
	}
	return n
}

// rises is when a running task comes to the next level.
func rises(now quantity.Instant, e *book.Entry, r *preempt.Record) quantity.Instant {
	had := r.Had(now, e)
	l := level(had)
	if l == levels-1 {
		return quantity.Never
	}
	return preempt.HasHad(now, e, r, first<<(2*l))
}

// anew: whoever is above level 0 begins again.
func anew(r *preempt.Record) time.Duration {
	if level(r.Attained) == 0 {
		return 0
	}
	return knob * r.Ran
}
