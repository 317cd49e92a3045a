package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// atOnce is from how many jobs on they enter the rankings together: all of them after a recovery, or when slices of a new kind come.
const atOnce = 32

// rankAll gives jobs their places in the rankings of the classes from one on. Many are sorted once for all classes: where no deadline
// makes a difference between them, they have one order on all.
func (f *Floor) rankAll(jobs []*Job, from int) {
	if len(jobs) < atOnce {
		for _, j := range jobs {
			f.places(j, from, func(c *Class) { j.group.rankings[c.at].Insert(c.before, j.answers[c.at].need, j) })
		}
		return
	}
	sortBy(jobs, func(j *Job) (int32, quantity.Instant) { return -j.key.Priority, j.key.Submitted }) // nearly the order of most policies
	slices.SortFunc(jobs, f.classes[from].before)
	for _, j := range jobs {
		f.places(j, from, func(c *Class) { j.group.rankings[c.at].Gather(j.answers[c.at].need, j) })
	}
	for _, g := range f.groups {
		for i := range g.rankings {
			g.rankings[i].Settle(f.classes[i].before)
		}
	}
}

// lineUp gives jobs their places among those that wait for the classes from one on, where jobs bid.
func (f *Floor) lineUp(jobs []*Job, from int) {
	if f.cfg.Market == nil {
		return
	}
	inLine := func(j *Job) bool { return j.ahead == 0 }
	if len(jobs) < atOnce {
		for _, j := range jobs {
			if inLine(j) {
				f.places(j, from, func(c *Class) { f.waits[c.at].Insert(byWait, j.answers[c.at].need, j) })
			}
		}
		return
	}
	sortBy(jobs, func(j *Job) (int32, quantity.Instant) { return 0, j.waits })
	for _, j := range jobs {
		if inLine(j) {
			f.places(j, from, func(c *Class) { f.waits[c.at].Gather(j.answers[c.at].need, j) })
		}
	}
	for i := range f.waits {
		f.waits[i].Settle(byWait)
	}
}

// places are the classes from one on that a ranked job can use.
func (f *Floor) places(j *Job, from int, do func(*Class)) {
	for _, c := range f.classes[from:] {
		if j.answers[c.at].need != never {
			do(c)
		}
	}
}

// sortBy puts jobs into the order of two numbers, which of a million are looked up once for each and not for each comparison: so that
// sorting them by what they are ends soon.
func sortBy(jobs []*Job, by func(*Job) (int32, quantity.Instant)) {
	type place struct {
		second    quantity.Instant
		first, of int32
	}
	order := make([]place, len(jobs))
	for i, j := range jobs {
		first, second := by(j)
		order[i] = place{second, first, int32(i)} //nolint:gosec // memory ends long before 2^31 jobs
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second), cmp.Compare(a.of, b.of))
	})
	before := slices.Clone(jobs)
	for i, p := range order {
		jobs[i] = before[p.of]
	}
}
