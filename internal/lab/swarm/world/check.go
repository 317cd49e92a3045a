package world

import "fmt"

// Check counts everything anew and says what is not as it is kept: a slice with two tasks, a task in two places, a sum that is off. It
// looks at every node and task, and is for tests.
func (w *World) Check() error {
	leftover, used, running := make([]int64, len(w.zones)), make([]int64, len(w.zones)), 0
	for n := range int32(w.c.Nodes()) {
		z := w.c.Zone(n)
		all := w.c.All(n)
		if bad := (w.rigid[n] | w.busy[n]) &^ all; bad != 0 || w.held[n]&^w.busy[n] != 0 {
			return fmt.Errorf("node %d has slices %b: rigid %b, busy %b, held %b", n, all, w.rigid[n], w.busy[n], w.held[n])
		}
		for slot := range int32(len(w.c.Slots(n))) {
			bit := uint8(1) << slot
			id := w.on[n*w.stride+slot]
			if (id != 0) != (w.busy[n]&^w.held[n]&bit != 0) {
				return fmt.Errorf("slice %d of node %d: task %x, busy %b, held %b", slot, n, uint64(id), w.busy[n], w.held[n])
			}
			if id != 0 {
				t := &w.tasks.list[id.Slot()]
				if t.ID != id || t.state != runs || t.node != n || t.slot != int8(slot) || w.c.Fits(n, t.Class)&bit == 0 {
					return fmt.Errorf("slice %d of node %d runs task %x, and that is %+v", slot, n, uint64(id), *t)
				}
				running++
				used[z]++
			}
			if !w.zones[z].dead && (w.rigid[n]&bit == 0 || w.busy[n]&bit != 0) {
				leftover[z]++
			}
		}
		if w.zones[z].dead && w.busy[n] != 0 {
			return fmt.Errorf("node %d is dead and its slices %b are busy", n, w.busy[n])
		}
	}
	waiting, alive := int64(0), 0
	for i := range w.tasks.list {
		switch t := &w.tasks.list[i]; t.state {
		case waits:
			waiting++
			if t.Deadline < w.now {
				return fmt.Errorf("task %+v still waits at %d", t.Task, w.now)
			}
		case runs:
			alive++
		case unused, over:
		}
	}
	if waiting != w.tasks.waiting || alive != running {
		return fmt.Errorf("%d tasks wait and %d are counted; %d run, on %d slices", waiting, w.tasks.waiting, alive, running)
	}
	for z := range w.zones {
		if x := &w.zones[z]; x.leftover != leftover[z] || x.used != used[z] {
			return fmt.Errorf("zone %d: leftover %d, used %d are counted, and there are %d and %d", z, x.leftover, x.used, leftover[z],
				used[z])
		}
	}
	return nil
}
