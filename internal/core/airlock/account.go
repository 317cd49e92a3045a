package airlock

import (
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// Account completes a decision that another made on the same memory, of which only the steps are known: their order, what each frees, and
// what had to be freed. tasks are as they were before.
func (a *Airlock) Account(now quantity.Instant, tasks []Task, d *Decision) {
	slices.SortFunc(d.Actions, func(x, y Action) int {
		if ahead := x.Cause == Foreseen; ahead != (y.Cause == Foreseen) {
			if ahead {
				return -1
			}
			return 1
		}
		if a.cfg.Outranks(now, &tasks[x.Task], &tasks[y.Task]) {
			return 1
		}
		return -1
	})
	if d.Level >= Severe {
		d.Deficit = a.lack(&d.Reading)
	}
	room := d.Room
	for i := range d.Actions {
		x := &d.Actions[i]
		t := &tasks[x.Task]
		switch all := max(0, t.Resident); {
		case x.Step == Resume:
			x.Relief = t.Parked
		case x.Step == Suspend:
			moves := min(all, room)
			room -= moves
			x.Relief = moves + a.growth(t.Growth)
		case x.Cause == Deficit || x.Cause == Foreseen:
			x.Relief = all + a.growth(t.Growth)
		default:
			x.Relief = all
		}
		if x.Cause == Deficit || x.Cause == Brink {
			d.Covered += x.Relief
		}
	}
}
