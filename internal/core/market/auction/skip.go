package auction

import (
	"time"

	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
)

// skips finds the rounds that can be skipped: windows that every job has been asked about, and that no job that changed could use. With
// many windows open most rounds are such: the jobs run elsewhere by then, or can't use such slices. Invariant: the jobs that changed count
// a skipped round as if they had been asked. It is valid until something is sold.
type skips struct {
	index *index.Index
	// shortest is by class the shortest window that a changed job could use; unknown until it is needed.
	shortest []time.Duration
	// rounds are by class the skipped rounds that are not counted yet.
	rounds []int64
	any    bool
	// off: no round is skipped. Tests compare with that.
	off bool
}

// unknown is a length that was not computed yet.
const unknown = -1

// reset discards the cached lengths; classes is the number of classes.
func (v *skips) reset(classes int) {
	if len(v.shortest) != classes {
		v.shortest, v.rounds = make([]time.Duration, classes), make([]int64, classes)
	}
	for i := range v.shortest {
		v.shortest[i] = unknown
	}
}

// add skips the round of a window if no job could use it. The index is fresh.
func (v *skips) add(now quantity.Instant, c *window.Class, w *window.Window) bool {
	if v.off || w == nil || w.Length(now) >= v.shortestUsable(c) {
		return false
	}
	v.rounds[c.At()]++
	v.any = true
	w.MarkCleared()
	return true
}

// shortestUsable is the shortest window of a class that a changed job could use, as inviteFresh computes it.
func (v *skips) shortestUsable(c *window.Class) time.Duration {
	shortest := &v.shortest[c.At()]
	if *shortest != unknown {
		return *shortest
	}
	*shortest = index.Never
	for _, j := range v.index.Fresh() {
		switch e := j.Entry(); {
		case !j.Active() || j.Spec().External:
		case !e.Indexed(): // its answer is only known by asking
			*shortest = 0
			return 0
		case e.Eligibility() == explain.Eligible:
			*shortest = min(*shortest, e.Need(c.At()))
		}
	}
	return *shortest
}

// count adds the skipped rounds to the counts of the jobs that changed.
func (v *skips) count(now quantity.Instant) {
	if !v.any {
		return
	}
	for _, j := range v.index.Fresh() {
		if !j.Active() || j.Spec().External {
			continue
		}
		for at, n := range v.rounds {
			switch e := j.Entry(); {
			case n == 0:
			case e.Eligibility() != explain.Eligible:
				j.Counts().Several(e.Eligibility(), n, now)
			default:
				j.Counts().SeveralRefusals(e.Refusal(at), n, now)
			}
		}
	}
	clear(v.rounds)
	v.any = false
}
