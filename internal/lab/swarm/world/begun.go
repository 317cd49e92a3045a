package world

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// beginRunning puts tasks on slices at time 0, as many as the load has there on average if nobody waits: exponential lengths have
// no memory, and these are as good as new. A world that begins empty takes some lengths of a long task to fill. Nobody is told but the
// nodes, and nothing counts them but use.
func (w *arrivals) beginRunning() {
	if !w.o.Flow.Begun {
		return
	}
	f := &w.o.Flow
	sum := w.mix[swarm.MaxClasses-1]
	short, long := w.o.running() // of a zone, in parts per million of a task
	for z := range int32(w.c.Zones) {
		s := prng.New(w.o.Seed, forBegun, uint64(z))
		for class := len(w.c.Classes) - 1; class >= 0; class-- { // the large ones first: they have fewer places
			for i, mean := range [2]int64{short, long} {
				for range poisson(&s, quantity.MulDiv(mean, f.Mix[class], sum)) {
					t := task{Task: swarm.Task{Arrived: before, Deadline: quantity.Never, Class: uint8(class), Long: i == 1}, past: true}
					t.length = exponential(&s, [2]time.Duration{f.Mean, f.LongMean}[i])
					if node, slot := w.room(z, int32(s.IntN(w.c.PerZone)), uint8(class)); slot >= 0 {
						w.run(t, node, slot)
					}
				}
			}
		}
		first := z * int32(w.c.PerZone)
		for n := first; n < first+int32(w.c.PerZone); n++ {
			if w.busy[n] != 0 {
				w.changed(n, 0)
			}
		}
	}
}

// run lets a task of before the beginning run.
func (w *tasks) run(t task, node int32, slot int8) {
	t.ID = swarm.NewTaskID(uint32(len(w.list)), 1)
	t.state, t.node, t.slot = runs, node, slot
	w.list = append(w.list, t)
	w.busy[node] |= 1 << slot
	w.occupy(&w.list[t.ID.Slot()])
}
