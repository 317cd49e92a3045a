package world

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/queue"
)

// deadlines are the tasks of one patience in the order in which they arrived, which is that of their deadlines: so a deadline costs
// no place in the heap.
type deadlines = queue.Ring[swarm.TaskID]

// due is the first deadline, Never if there is none.
func (w *World) due(r *deadlines) quantity.Instant {
	if r.Len() == 0 {
		return quantity.Never
	}
	return w.tasks[r.First().Slot()].Deadline
}
