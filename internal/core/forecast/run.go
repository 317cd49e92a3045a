package forecast

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Stretches is into how many stretches of equal progress a run is divided, unless said otherwise: use is a function of how
// far a run has come, never of the time.
const Stretches = 16

// Run is what one finished run has taught: one observation. It is what a fact or a message carries.
type Run struct {
	// Peaks of use in stretches of equal progress, 1 to trp.MaxStretches. Where the use of a stretch was not observed apart,
	// it is the least that is known to hold for it: the peak of the piece that it lay in.
	Peaks []quantity.Amount
	// Unit is the run time of one unit at speed 1; 0 where it was not observed.
	Unit time.Duration
}

// Trail collects a run while its pieces end, in any order; their peaks over what they completed, those that were ended for
// their memory too. It becomes a Run when the whole job has finished, so that every stretch has a peak that nothing cut
// short. Jobs that never finish teach nothing: what is learned holds for jobs that do. The zero value divides it into
// Stretches.
type Trail struct {
	// Total units of the run, at least 1.
	Total int64
	Peaks []quantity.Amount
}

// Touch takes the peak of a piece over units [from, to): every stretch that it touches used at most that.
func (t *Trail) Touch(from, to int64, peak quantity.Amount) {
	if t.Peaks == nil {
		t.Peaks = make([]quantity.Amount, Stretches)
	}
	first, last := stretches(len(t.Peaks), t.Total, from, to)
	for i := first; i <= last; i++ {
		t.Peaks[i] = max(t.Peaks[i], peak)
	}
}

// stretches are the first and the last of n stretches that units [from, to) of total touch; last < first where there is
// none. Stretch i has the progress from i/n up to (i+1)/n.
func stretches(n int, total, from, to int64) (first, last int) {
	from, to = max(0, from), min(to, total)
	if total < 1 || n < 1 || from >= to {
		return 0, -1
	}
	// MulDiv rounds up: what ends before to lies in the stretch before; and a stretch that begins behind unit from is one too
	// many.
	last = int(quantity.MulDiv(to, int64(n), total)) - 1
	first = int(quantity.MulDiv(from, int64(n), total))
	if quantity.MulDiv(int64(first), total, int64(n)) > from {
		first--
	}
	return first, last
}

// ends are where the stretches of a table of total units end: at n shares of it, fewer where there are fewer units.
func ends(n int, total int64) []int64 {
	n = min(max(n, 1), trp.MaxStretches)
	var out []int64
	var last int64
	for i := range int64(n) {
		if end := quantity.MulDiv(i+1, total, int64(n)); end > last {
			out = append(out, end)
			last = end
		}
	}
	return out
}
