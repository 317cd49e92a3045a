package preempt

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// SRPT is shortest remaining processing time first: whoever waits is served by what is left of its declared run time, on
// the class where that is shortest, and may stop running tasks that have more left by the same measure. On one device, with the
// truth declared and stops that cost nothing, no schedule has a smaller mean completion (Schrage, Operations Research 1968); on
// several alike it comes near in heavy traffic (Grosof, Scully and Harchol-Balter, Performance Evaluation 2018). How work is
// stopped, moved and set going again is package preempt's.
//
// Stops cost something. With c for a checkpoint and r for a restore, to stop a task with R left for one that takes S ends the
// latter R - c sooner and the former S + c + r later: so it is done where R > S + 2c + r.
//
// A running task is moved to a faster class that is free (Gandiva, OSDI 2018). Wide and long tasks may wait for ever.
func SRPT() planner.Kind {
	return Kind("srpt", "shortest remaining time first: checkpoint and preempt for who has less left (Schrage, OR 1968)",
		func(o planner.Options) Rule {
			return Rule{Rank: srptLeft, Margin: int64(2*o.Checkpoint + o.Restore), Moves: true}
		})
}

// srptLeft is the time in nanoseconds that a task is planned to take yet on the class where that is shortest; of one that nobody
// knows the run of the most there is.
func srptLeft(now quantity.Instant, e *book.Entry, _ *Record) int64 {
	best := e.Shortest()
	if e.State != book.Running || best == book.Unknown {
		return min(best, srptMost)
	}
	return quantity.MulDiv(int64(max(0, e.End.Sub(now))), best, max(1, e.Run(int(e.Class))))
}

// srptMost is above every run time, and leaves room for a margin.
const srptMost = book.Unknown / 2
