package forecast

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Stretches is into how many stretches of equal progress a run is divided, unless said otherwise: use is a function of how
// far a run has come, never of the time.
const Stretches = 16

// Run is what one finished run taught: one observation. It is what a fact or a message carries.
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

// Runs is what is remembered of the finished runs of one template or queue, at most MaxRuns, newest last. Its memory is
// bounded: 256 runs of 64 stretches are 128 KiB. A snapshot keeps the list; only Add changes it.
//
// All its bounds are for the next run, if that is exchangeable with those remembered: the chance is over all of them
// together (it is marginal), not for a certain set of remembered runs.
type Runs struct {
	List []Run
	// sums are the digests of the runs: they are many numbers, which do not change.
	sums []uint64
}

// Add takes one run more; the oldest goes where there are too many. A run without peaks, or with more than
// trp.MaxStretches, teaches nothing.
func (r *Runs) Add(run Run) {
	if len(run.Peaks) == 0 || len(run.Peaks) > trp.MaxStretches {
		return
	}
	if n := len(r.List) - MaxRuns + 1; n > 0 {
		r.List, r.sums = slices.Delete(r.List, 0, n), slices.Delete(r.sums, 0, n)
	}
	r.List, r.sums = append(r.List, run), append(r.sums, run.Mix(digest.New()).Sum())
}

// Over is what a piece over units [from, to) of a run of total units passes with a chance of at most theta (parts per
// million). ok is false where too few runs are remembered for that; the most that any of them used is then returned.
func (r *Runs) Over(total, from, to, theta int64) (bound quantity.Amount, ok bool) {
	k, ok := Rank(len(r.List), theta)
	peaks := make([]quantity.Amount, 0, len(r.List))
	for i := range r.List {
		peaks = append(peaks, r.List[i].over(total, from, to))
	}
	return smallest(peaks, k), ok
}

// over is the run's peak while a run of total units does [from, to).
func (run *Run) over(total, from, to int64) quantity.Amount {
	var peak quantity.Amount
	first, last := stretches(len(run.Peaks), total, from, to)
	for i := first; i <= last; i++ {
		peak = max(peak, run.Peaks[i])
	}
	return peak
}

// smallest is the k-th smallest, the largest where there are fewer; 0 of none. It may reorder the list.
func smallest[T quantity.Amount | time.Duration](list []T, k int) T {
	if len(list) == 0 {
		return 0
	}
	k = max(1, min(k, len(list)))
	above := len(list) - k // how many are above it: few where theta is small
	if above > 8 {
		slices.Sort(list)
		return list[k-1]
	}
	var room [9]T // the largest so far, rising
	top := room[:copy(room[:above+1], list)]
	slices.Sort(top)
	for _, x := range list[above+1:] {
		if x <= top[0] {
			continue
		}
		i := 0
		for ; i < above && top[i+1] < x; i++ {
			top[i] = top[i+1]
		}
		top[i] = x
	}
	return top[0]
}

// Table is the profile of a job of total units, at least 1, as decisions use it: for every run of stretches the least
// capacity that a piece within them passes with a chance of at most theta. It keeps what trp.Table promises: it never falls
// as a piece grows. ok is false where too few runs are remembered; the table is then what they used at most.
//
// Each entry is a bound for one piece, which is what fit asks for (adr 0005); that some piece of a run passes its own may
// have a larger chance. For a whole curve see Envelope.
func (r *Runs) Table(total, theta int64) (t trp.Table, ok bool) {
	return r.table(ends(r.finest(), total), theta)
}

// finest is the largest number of stretches that a remembered run has.
func (r *Runs) finest() int {
	n := 1
	for i := range r.List {
		n = max(n, len(r.List[i].Peaks))
	}
	return n
}

// table is Table with given ends of stretches.
func (r *Runs) table(bounds []int64, theta int64) (t trp.Table, ok bool) {
	k, ok := Rank(len(r.List), theta)
	n, runs := len(bounds), len(r.List)
	t = trp.Table{Bounds: bounds, Least: make([][]quantity.Amount, n)}
	fine := r.fine(bounds)
	peaks, room := make([]quantity.Amount, runs), make([]quantity.Amount, runs)
	least := make([]quantity.Amount, 0, n*(n+1)/2)
	for i := range n {
		clear(peaks)
		for j := i; j < n; j++ {
			for run, peak := range fine[j*runs : (j+1)*runs] {
				peaks[run] = max(peaks[run], peak)
			}
			copy(room, peaks)
			least = append(least, smallest(room, k))
		}
		t.Least[i] = least[len(least)-(n-i) : len(least) : len(least)]
	}
	return t, ok
}

// fine are the peaks of every run in stretches that end at bounds, which may be other than the run's own: those of all runs in the first,
// then in the second, and so on.
func (r *Runs) fine(bounds []int64) []quantity.Amount {
	fine := make([]quantity.Amount, 0, len(r.List)*len(bounds))
	total, from := bounds[len(bounds)-1], int64(0)
	for _, to := range bounds {
		of, first, last := 0, 0, -1 // most runs have as many stretches
		for i := range r.List {
			peaks := r.List[i].Peaks
			if len(peaks) != of {
				of = len(peaks)
				first, last = stretches(of, total, from, to)
			}
			most := quantity.Amount(0)
			for _, peak := range peaks[first : last+1] {
				most = max(most, peak)
			}
			fine = append(fine, most)
		}
		from = to
	}
	return fine
}

// Unit is the run time of one unit at speed 1 that the next run passes with a chance of at most theta (parts per million).
// ok is false where too few were observed; the longest is then returned, 0 if there is none.
func (r *Runs) Unit(theta int64) (unit time.Duration, ok bool) {
	var units []time.Duration
	for i := range r.List {
		if u := r.List[i].Unit; u > 0 {
			units = append(units, u)
		}
	}
	k, ok := Rank(len(units), theta)
	return smallest(units, k), ok
}

// Mix mixes a run into a digest.
func (run *Run) Mix(h digest.Hash) digest.Hash {
	return digest.Numbers(h, run.Peaks).Int(int64(run.Unit))
}

// Mix mixes runs that were added into a digest, in their order.
func (r *Runs) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(len(r.sums)))
	for _, sum := range r.sums {
		h = h.Int(int64(sum)) //nolint:gosec // all of its bits are mixed in
	}
	return h
}
