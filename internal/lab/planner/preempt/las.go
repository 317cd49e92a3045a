package preempt

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// lasQuantum of device time.
const lasQuantum = 15 * time.Minute

// LAS is least attained service: the task with the least device time goes first, and takes the place of a running task that has had a
// quantum more. It needs no estimate of a task's length: where lengths are heavy-tailed, a task that has had little is likely to be over
// soon (Righter and Shanthikumar, Probability in the Engineering and Informational Sciences 1989; for gangs, with devices x time, the
// 2D-LAS of Tiresias, NSDI 2019). Tasks that have had equally much take turns of a quantum.
//
// Unlike migrate it has no levels, moves nothing, and does not serve long-waiting tasks as if new. Package preempt stops and restarts work.
func LAS() planner.Kind {
	return Kind("las", "least attained service: checkpoint and preempt for who has had less, in quanta of 15 minutes (2D-LAS of "+
		"Tiresias, NSDI'19)",
		func(planner.Options) Rule { return Rule{Rank: lasHad, Rises: lasRises} })
}

// lasHad is how many quanta a task has had.
func lasHad(now quantity.Instant, e *book.Entry, r *Record) int64 {
	return int64(r.Had(now, e) / lasQuantum)
}

// lasRises is when a running task begins its next quantum.
func lasRises(now quantity.Instant, e *book.Entry, r *Record) quantity.Instant {
	return HasHad(now, e, r, time.Duration(lasHad(now, e, r)+1)*lasQuantum)
}
