package forecast

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Runs is what is remembered of the finished runs of one template or queue, at most MaxRuns, newest last. Its memory is
// bounded: 256 runs of 64 stretches are 128 KiB. It is plain data, to be kept in a snapshot; only Add changes it.
//
// All its bounds are for the next run, if that is exchangeable with those remembered: the chance is over all of them
// together (it is marginal), not for a certain set of remembered runs.
type Runs struct{ List []Run }

// Add takes one run more; the oldest goes where there are too many. A run without peaks, or with more than
// trp.MaxStretches, teaches nothing.
func (r *Runs) Add(run Run) {
	if len(run.Peaks) == 0 || len(run.Peaks) > trp.MaxStretches {
		return
	}
	if n := len(r.List) - MaxRuns + 1; n > 0 {
		r.List = slices.Delete(r.List, 0, n)
	}
	r.List = append(r.List, run)
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
	var top [9]T // the largest so far, rising
	n := 0
	for _, x := range list {
		switch {
		case n <= above:
			n++
		case x <= top[0]:
			continue
		default:
			copy(top[:], top[1:n])
		}
		i := n - 1
		for ; i > 0 && top[i-1] > x; i-- {
			top[i] = top[i-1]
		}
		top[i] = x
	}
	return top[0]
}

// Table is the profile of a job of total units, at least 1, as decisions use it: for every run of stretches the least
// capacity that a piece within them passes with a chance of at most theta. It keeps what trp.Table promises: it never falls
// as a piece grows. ok is false where too few runs are remembered; the table is then what they used at most.
//
// Each entry is a bound for one piece, which is what SYSTEMS.md 1.2 asks for; that some piece of a run passes its own may
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
	n := len(bounds)
	t = trp.Table{Bounds: bounds, Least: make([][]quantity.Amount, n)}
	total := bounds[n-1]
	// The peaks of every run in the table's stretches, which may be other than the run's own.
	fine := make([]quantity.Amount, len(r.List)*n)
	from := int64(0)
	for j, to := range bounds {
		for i := range r.List {
			fine[i*n+j] = r.List[i].over(total, from, to)
		}
		from = to
	}
	peaks, sorted := make([]quantity.Amount, len(r.List)), make([]quantity.Amount, len(r.List))
	for i := range n {
		clear(peaks)
		t.Least[i] = make([]quantity.Amount, n-i)
		for j := i; j < n; j++ {
			for run := range peaks {
				peaks[run] = max(peaks[run], fine[run*n+j])
			}
			copy(sorted, peaks)
			t.Least[i][j-i] = smallest(sorted, k)
		}
	}
	return t, ok
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
