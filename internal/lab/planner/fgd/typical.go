package fgd

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
)

// Typical is what is to be expected of the tasks that are yet to come, given those of the past: classes of tasks with equal
// processors, devices, share and allowed classes, the most frequent first (of equally frequent ones that with more
// processors, share, devices and the higher set of classes), until 95% of the tasks are covered. Tasks without devices
// count; host memory does not.
func Typical(tasks []planner.Task) []planner.Typical {
	counts := map[planner.Task]int64{}
	for _, t := range tasks {
		kind := planner.Task{Devices: t.Devices, Share: t.Share, Spread: t.Spread, Classes: t.Classes, CPU: t.CPU}
		if t.Devices == 0 {
			kind = planner.Task{Share: planner.Whole, CPU: t.CPU}
		}
		counts[kind]++
	}
	all := make([]planner.Typical, 0, len(counts))
	for kind, count := range counts { //sluice:sorted the classes are sorted before anybody sees them
		all = append(all, planner.Typical{Task: kind, Count: count})
	}
	slices.SortFunc(all, func(a, b planner.Typical) int { return order(&b, &a) })
	covered := int64(0)
	for i, kind := range all {
		if covered*100 >= int64(len(tasks))*95 {
			return all[:i]
		}
		covered += kind.Count
	}
	return all
}

// order is total over classes of tasks, the least frequent first. A task without devices has no share to compare.
func order(a, b *planner.Typical) int {
	share := func(t *planner.Task) int32 { return t.Share * min(t.Devices, 1) }
	spread := func(t *planner.Task) int {
		if t.Spread {
			return 1
		}
		return 0
	}
	x, y := &a.Task, &b.Task
	return cmp.Or(cmp.Compare(a.Count, b.Count), cmp.Compare(x.CPU, y.CPU), cmp.Compare(share(x), share(y)),
		cmp.Compare(x.Devices, y.Devices), cmp.Compare(x.Classes, y.Classes), cmp.Compare(spread(x), spread(y)))
}
