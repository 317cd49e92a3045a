package preempt

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

const (
	// migrateLevels, and the device time at which the second begins.
	migrateLevels = 6
	migrateFirst  = 15 * time.Minute
	// migrateKnob is how many times its run a task waits before it begins at level 0 again.
	migrateKnob = 8
)

// Migrate is the baseline that stops running work: least attained service with discrete levels, as Tiresias (Gu et al., NSDI 2019) has it,
// and migration to a faster class of devices, as Gandiva (Xiao et al., OSDI 2018) has it. Package preempt stops, moves and restarts work.
//
// A task's level follows from the device time that it has had: below 15 minutes it is 0, and each next level is four times as wide, up to
// level 5 from 64 hours on (Tiresias uses two levels whose border is tuned to the trace; these need no tuning). Whoever waits is served by
// level, then by first arrival, and may stop running tasks of higher levels.
//
// Tasks that are Fixed are never stopped; the schedulers named assume that every job can be.
//
// Against starving: a task that has run and then waits for eight times as long as it ran begins again at level 0 (Tiresias' PROMOTEKNOB).
func Migrate() planner.Kind {
	return Kind("migrate", "checkpoint, preempt and migrate: least attained service (Tiresias, NSDI'19) with moves to faster "+
		"classes (Gandiva, OSDI'18)",
		func(planner.Options) Rule {
			return Rule{Rank: migrateRank, Rises: migrateRises, Anew: migrateAnew, Moves: true}
		})
}

func migrateRank(now quantity.Instant, e *book.Entry, r *Record) int64 {
	return int64(migrateLevel(r.Had(now, e)))
}

// migrateLevel of a device time.
func migrateLevel(t time.Duration) int {
	n := 0
	for border := migrateFirst; n < migrateLevels-1 && t >= border; border *= 4 {
		n++
	}
	return n
}

// migrateRises is when a running task comes to the next level.
func migrateRises(now quantity.Instant, e *book.Entry, r *Record) quantity.Instant {
	had := r.Had(now, e)
	l := migrateLevel(had)
	if l == migrateLevels-1 {
		return quantity.Never
	}
	return HasHad(now, e, r, migrateFirst<<(2*l))
}

// migrateAnew: a task above level 0 begins again.
func migrateAnew(r *Record) time.Duration {
	if migrateLevel(r.Attained) == 0 {
		return 0
	}
	return migrateKnob * r.Ran
}
