package peers

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// Bare is a world as queueing theory has it: one class, no rigid work, no long tasks, no delay, no decision time, tasks of a mean
// length of a second that wait for as long as it takes.
func Bare(kind swarm.Kind, zones, perZone, slots int, load int64) world.Options {
	o := world.Usual(zones, kind, load)
	o.Cluster = swarm.Uniform(zones, perZone, slots)
	o.Flow.LongShare, o.Flow.Patience, o.Flow.Mix, o.Flow.Begun = 0, world.Forever, [swarm.MaxClasses]int64{1}, false
	o.Rigid, o.Network, o.Decision = world.Rigid{}, world.Network{}, 0
	return o
}

// Play plays a world to its end.
func Play(t *testing.T, o world.Options) world.Counts {
	t.Helper()
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	return w.Counts()
}

// Used is the share of the leftover that ran tasks.
func Used(c *world.Counts) float64 {
	var left, used int64
	for _, z := range c.Zones {
		left, used = left+z.Leftover, used+z.Used
	}
	return float64(used) / float64(left)
}

// Rate is the tasks started in a second of the window.
func Rate(c *world.Counts) float64 { return float64(c.Starts) / time.Duration(c.Window).Seconds() }

// Waits is the mean time from arrival to start of tasks that arrived from an instant on, and the mean time from the arrival of such
// jobs to the end of their last task.
type Waits struct {
	From quantity.Instant

	landed, n int64 // nanoseconds; tasks
	jobs      map[uint64]*lifetime
}

type lifetime struct {
	came, over quantity.Instant
}

// Landed implements world.Observer.
func (w *Waits) Landed(now quantity.Instant, t swarm.Task, _ int32, _ int8) {
	if t.Arrived >= w.From {
		w.landed += int64(now.Sub(t.Arrived))
		w.n++
	}
}

// Over implements world.Observer.
func (w *Waits) Over(now quantity.Instant, t swarm.Task, _ world.Fate) {
	if t.Arrived < w.From {
		return
	}
	if w.jobs == nil {
		w.jobs = map[uint64]*lifetime{}
	}
	if w.jobs[t.Job] == nil {
		w.jobs[t.Job] = &lifetime{came: t.Arrived}
	}
	w.jobs[t.Job].over = now
}

// Mean wait of a task in seconds.
func (w *Waits) Mean() float64 { return float64(w.landed) / float64(max(1, w.n)) / 1e9 }

// Response of a job in seconds, on average, of those that arrived before an instant.
func (w *Waits) Response(until quantity.Instant) float64 {
	sum, n := 0., 0.
	for _, j := range w.jobs {
		if j.came < until {
			sum, n = sum+j.over.Sub(j.came).Seconds(), n+1
		}
	}
	return sum / n
}
