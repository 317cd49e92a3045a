package measure

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Finish ends the run at an instant not before the last event and gives the metrics, all of Table but the last three and in its
// order, then those of every group of jobs, by name. What could not be measured (a mean of no jobs) is NaN. Jobs that have not come to
// their end count with the time that they took so far. It can be called once.
func (m *Collector) Finish(at quantity.Instant) Metrics {
	m.advance(at)
	m.done = true
	for i := range m.jobs {
		if j := &m.jobs[i]; j.known {
			m.last = at
			if j.counted {
				m.settle(at, j, job.Waiting)
			}
		}
	}
	length := m.within(at)
	for c := range m.stock.idle {
		m.stock.idle[c].settle(length)
	}
	capacity, memory := m.capacity(length)
	idle := m.stock.idleTime()

	values := Metrics{}
	set := values.Set
	set(Utilization, ratio(capacity-idle, capacity))
	set(UsefulUtilization, ratio(m.spent.useful.float(), capacity))
	set(MemoryUtilization, ratio(m.spent.peak.float(), memory))
	setQuantiles(&values, m.ends.wait, WaitMean, WaitP50, WaitP95, WaitP99)
	setQuantiles(&values, m.ends.completion, CompletionMean, CompletionP50, CompletionP95, CompletionP99)
	set(CompletionMax, math.NaN())
	set(WorstJob, math.NaN())
	if m.ends.completion.n > 0 {
		set(CompletionMax, m.ends.longest.Seconds())
		set(WorstJob, m.ends.worst)
	}
	set(CompletionPerWork, ratio(m.ends.stretch, float64(m.ends.completion.n)))
	set(SlowdownMean, ratio(m.ends.slowdown, float64(m.ends.finished)))
	set(Jobs, float64(m.ends.submitted))
	set(Rejected, float64(m.ends.rejected))
	set(Failed, float64(m.ends.failed))
	set(Unfinished, float64(m.ends.unfinished))
	set(MemoryExcessRate, ratio(float64(m.spent.excesses), float64(m.spent.pieces)))
	set(Theta, ratio(float64(m.spent.theta)/1e6, float64(m.spent.pieces)))
	set(Subjobs, ratio(float64(m.ends.runs), float64(m.ends.began)))
	set(OverheadShare, ratio(m.spent.overhead.float(), m.spent.busy.float()))
	set(LostShare, ratio(m.spent.lost.float(), m.spent.busy.float()))
	set(Fragmentation, ratio(m.fragments(), idle))
	set(Unsellable, ratio(m.stock.unsold.float(), capacity))
	fairness, worst := m.fairness()
	set(Fairness, fairness)
	set(WorstQueue, worst)
	set(MessagesPerTask, ratio(float64(m.messages), float64(m.ends.arrived)))
	set(UsefulWork, m.spent.work.float()/float64(time.Second))
	set(Makespan, math.NaN())
	if m.ends.arrived > 0 {
		set(Makespan, m.last.Sub(m.first).Seconds())
	}
	if m.ends.due > 0 {
		set(MissedDeadlines, ratio(float64(m.ends.missed), float64(m.ends.due)))
	}
	m.groups.finish(&values, capacity)
	return values
}

// Waits is the distribution of the waits, at most 200 points; nil if there were none.
func (m *Collector) Waits() []Point { return m.ends.wait.curve() }

func setQuantiles(values *Metrics, h *histogram, mean, p50, p95, p99 string) {
	q := h.quantiles(.5, .95, .99)
	values.Set(mean, h.mean())
	values.Set(p50, q[0])
	values.Set(p95, q[1])
	values.Set(p99, q[2])
}

// capacity of all slices over a length of time, weighted, and of their memory.
func (m *Collector) capacity(length time.Duration) (weighted, memory float64) {
	for _, c := range m.config.Classes {
		weighted += float64(c.Count) * float64(c.Weight) * float64(length)
		memory += float64(c.Count) * float64(c.Memory) * float64(length)
	}
	return weighted, memory
}

// fragments is the integral of FGD's F over the window: the idle time, weighted, that a job drawn from all that were
// submitted could not use.
func (m *Collector) fragments() float64 {
	kinds := slices.SortedFunc(maps.Keys(m.kinds), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.usable, b.usable), cmp.Compare(a.slices, b.slices))
	})
	var sum float64
	for _, k := range kinds {
		var unusable float64
		for c, class := range m.config.Classes {
			if k.usable>>c&1 == 0 {
				unusable += float64(class.Weight) * m.stock.idle[c].total()
			} else {
				unusable += float64(class.Weight) * m.stock.idle[c].below(int(k.slices))
			}
		}
		sum += unusable * float64(m.kinds[k])
	}
	return ratio(sum, float64(m.ends.submitted))
}

// fairness is Jain's index over the queues' speeds, the reciprocals of their mean completion per work, and the largest of
// these means.
func (m *Collector) fairness() (jain, worst float64) {
	var n, sum, squares float64
	worst = math.NaN()
	for i := range m.queues {
		q := &m.queues[i]
		if q.n == 0 {
			continue
		}
		mean := q.stretch / float64(q.n)
		if n == 0 || mean > worst {
			worst = mean
		}
		// A queue whose jobs took no time at all is as fast as can be measured, not infinitely fast.
		speed := 1 / max(mean, 1e-9)
		n, sum, squares = n+1, sum+speed, squares+speed*speed
	}
	return ratio(sum*sum, n*squares), worst
}
