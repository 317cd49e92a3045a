package market

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Where jobs bid, all windows that are open are offered to whoever has changed, and where many are open most of these rounds are in vain: the job runs
// wherever it may by then, or has no use for such slices. They are counted, and nobody is asked.

// futile tells the rounds of windows that everybody has been asked about before, and that nobody who has changed could use. It holds until something is sold.
type futile struct {
	// least is by class the shortest window that one of them could use; unknown until it is asked for.
	least []time.Duration
	// rounds are by class how many are not counted yet.
	rounds []int64
	any    bool
	// off: all are asked. Tests compare with that.
	off bool
}

// unknown stands for a length of time that nobody has looked for yet.
const unknown = -1

// reset forgets what is known; classes is how many there are.
func (v *futile) reset(classes int) {
	if len(v.least) != classes {
		v.least, v.rounds = make([]time.Duration, classes), make([]int64, classes)
	}
	for i := range v.least {
		v.least[i] = unknown
	}
}

// inVain says whether nobody could use an offer's window, and if so has that round behind it. The index is fresh.
func (f *Floor) inVain(now quantity.Instant, o *offer) bool {
	w, c := o.find(), o.slice.class
	if w == nil || w.length(now) >= f.leastWanted(c) {
		return false
	}
	f.nextRound++
	f.stats.Rounds++
	f.futile.rounds[c.at]++
	f.futile.any = true
	w.offered, w.won = true, false
	return true
}

// leastWanted is the shortest window of a class that one who has changed could use, as inviteFresh has it.
func (f *Floor) leastWanted(c *Class) time.Duration {
	least := &f.futile.least[c.at]
	if *least != unknown {
		return *least
	}
	*least = never
	for _, j := range f.fresh.List() {
		switch {
		case j.active == 0 || j.Spec().External:
		case !j.indexed: // only asking tells
			*least = 0
			return 0
		case j.ineligible == Eligible:
			*least = min(*least, j.answers[c.at].need)
		}
	}
	return *least
}

// countFutile has those who have changed count the rounds that were in vain.
func (f *Floor) countFutile(now quantity.Instant) {
	if !f.futile.any {
		return
	}
	for _, j := range f.fresh.List() {
		if j.active == 0 || j.Spec().External {
			continue
		}
		for at, n := range f.futile.rounds {
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
	clear(f.futile.rounds)
	f.futile.any = false
}
