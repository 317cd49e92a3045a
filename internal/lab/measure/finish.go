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
	for c := range m.idle {
		m.idle[c].settle(length)
	}
	capacity, memory := m.capacity(length)
	idle := m.idleTime()

	values := Metrics{}
	set := values.Set
	set(Utilization, ratio(capacity-idle, capacity))
	set(UsefulUtilization, ratio(m.useful.float(), capacity))
	set(MemoryUtilization, ratio(m.peak.float(), memory))
	setQuantiles(&values, m.wait, WaitMean, WaitP50, WaitP95, WaitP99)
	setQuantiles(&values, m.completion, CompletionMean, CompletionP50, CompletionP95, CompletionP99)
	set(CompletionMax, math.NaN())
	set(WorstJob, math.NaN())
	if m.completion.n > 0 {
		set(CompletionMax, m.longest.Seconds())
		set(WorstJob, m.worst)
	}
	set(CompletionPerWork, ratio(m.stretch, float64(m.completion.n)))
	set(SlowdownMean, ratio(m.slowdown, float64(m.finished)))
	set(Jobs, float64(m.submitted))
	set(Rejected, float64(m.rejected))
	set(Failed, float64(m.failed))
	set(Unfinished, float64(m.unfinished))
	set(MemoryExcessRate, ratio(float64(m.excesses), float64(m.pieces)))
	set(Theta, ratio(float64(m.theta)/1e6, float64(m.pieces)))
	set(Subjobs, ratio(float64(m.runs), float64(m.began)))
	set(OverheadShare, ratio(m.overhead.float(), m.busy.float()))
	set(LostShare, ratio(m.lost.float(), m.busy.float()))
	set(Fragmentation, ratio(m.fragments(), idle))
	set(Unsellable, ratio(m.unsold.float(), capacity))
	fairness, worst := m.fairness()
	set(Fairness, fairness)
	set(WorstQueue, worst)
	set(MessagesPerTask, ratio(float64(m.messages), float64(m.arrived)))
	set(UsefulWork, m.work.float()/float64(time.Second))
	set(Makespan, math.NaN())
	if m.arrived > 0 {
		set(Makespan, m.last.Sub(m.first).Seconds())
	}
	if m.due > 0 {
		set(MissedDeadlines, ratio(float64(m.missed), float64(m.due)))
	}
	m.groups.finish(&values, capacity)
	return values
}

// Waits is the distribution of the waits, at most 200 points; nil if there were none.
func (m *Collector) Waits() []Point { return m.wait.curve() }

// ratio is a/b, NaN if b is nothing.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return math.NaN()
	}
	return a / b
}

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

// idleTime of all slices, weighted.
func (m *Collector) idleTime() float64 {
	var sum float64
	for c, k := range m.config.Classes {
		sum += float64(k.Weight) * m.idle[c].total()
	}
	return sum
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
				unusable += float64(class.Weight) * m.idle[c].total()
			} else {
				unusable += float64(class.Weight) * m.idle[c].below(int(k.slices))
			}
		}
		sum += unusable * float64(m.kinds[k])
	}
	return ratio(sum, float64(m.submitted))
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
		// A queue whose jobs took no time at all is as fast as can be told, not infinitely fast.
		speed := 1 / max(mean, 1e-9)
		n, sum, squares = n+1, sum+speed, squares+speed*speed
	}
	return ratio(sum*sum, n*squares), worst
}
