package learn

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// enoughPrepares is from how many starts on the longest of them is left out: one that a node was busy with something else in.
const enoughPrepares = 4

// learnPrepare adds a start's time at its node before the process began. It is kept apart from the time of a unit, which counts from the
// process's start (job.Result.Ran). A node that does not report it, such as a simulated one, teaches nothing.
func learnPrepare(l *protocol.Learned, r *job.Result) {
	took := r.Prepare - r.Unpack
	if r.Start == 0 || took <= 0 || r.Stayed { // no program was started
		return
	}
	l.Prepares = append(slices.Clone(l.Prepares), took)
	if n := len(l.Prepares); n > protocol.MaxPrepares {
		l.Prepares = slices.Delete(l.Prepares, 0, n-protocol.MaxPrepares)
	}
	sorted := slices.Sorted(slices.Values(l.Prepares))
	l.Prepare = sorted[len(sorted)-1]
	if len(sorted) >= enoughPrepares {
		l.Prepare = sorted[len(sorted)-2]
	}
}
