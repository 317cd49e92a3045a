package market

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Where jobs bid, every open window is offered to all jobs that changed. With many windows open most of these rounds have no taker: the
// jobs run elsewhere by then, or can't use such slices. Such rounds are counted, and no job is asked.

// skipped finds the rounds that can be skipped: windows that every job has been asked about, and that no job that changed could use. It is
// valid until something is sold.
type skipped struct {
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
func (v *skipped) reset(classes int) {
	if len(v.shortest) != classes {
		v.shortest, v.rounds = make([]time.Duration, classes), make([]int64, classes)
	}
	for i := range v.shortest {
		v.shortest[i] = unknown
	}
}

// skip reports whether no job could use an offer's window, and then counts its round as held. The index is fresh.
func (f *Floor) skip(now quantity.Instant, o *offer) bool {
	w, c := o.find(), o.slice.class
	if w == nil || w.length(now) >= f.shortestUsable(c) {
		return false
	}
	f.nextRound++
	f.stats.Rounds++
	f.skipped.rounds[c.at]++
	f.skipped.any = true
	w.offered, w.won = true, false
	return true
}

// shortestUsable is the shortest window of a class that a changed job could use, as inviteFresh computes it.
func (f *Floor) shortestUsable(c *Class) time.Duration {
	shortest := &f.skipped.shortest[c.at]
	if *shortest != unknown {
		return *shortest
	}
	*shortest = never
	for _, j := range f.fresh.List() {
		switch {
		case j.active == 0 || j.Spec().External:
		case !j.indexed: // its answer is only known by asking
			*shortest = 0
			return 0
		case j.ineligible == Eligible:
			*shortest = min(*shortest, j.answers[c.at].need)
		}
	}
	return *shortest
}

// countSkipped adds the skipped rounds to the counts of the jobs that changed.
func (f *Floor) countSkipped(now quantity.Instant) {
	if !f.skipped.any {
		return
	}
	for _, j := range f.fresh.List() {
		if j.active == 0 || j.Spec().External {
			continue
		}
		for at, n := range f.skipped.rounds {
			switch {
			case n == 0:
			case j.ineligible != Eligible:
				j.counts.several(j.ineligible, n, now)
			default:
				refusal := j.answers[at].refusal
				j.counts.several(reasonOf[refusal.Why], n, now).Refusal = refusal
			}
		}
	}
	clear(f.skipped.rounds)
	f.skipped.any = false
}
