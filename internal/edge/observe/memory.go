package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/internal/core/status"
)

// memory is what is shown of the machine's memory, and of what is done where it runs out.
type memory struct {
	last   status.Strain
	gauges []memoryGauge
	states map[string]prometheus.Gauge
	state  string
	tally  []memoryTally
}

type memoryGauge struct {
	of    func(*status.Strain) float64
	gauge prometheus.Gauge
}

// memoryTally is a counter, of a number that only grows.
type memoryTally struct {
	of      func(*status.Strain) float64
	counter prometheus.Counter
}

// Of memory, apart from its levels: nobody looks at it, and it was not heard of for long.
const (
	memoryOff    = "off"
	memorySilent = "silent"
)

// memoryStates are all that the machine's memory can be in.
func memoryStates() []string {
	return []string{memoryOff, memorySilent, "calm", "guarded", "severe", "emergency"}
}

func newMemory(r *prometheus.Registry) memory {
	m := memory{states: map[string]prometheus.Gauge{}}
	gauge := func(name, help string, labels prometheus.Labels, of func(*status.Strain) float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
		r.MustRegister(g)
		m.gauges = append(m.gauges, memoryGauge{of, g})
	}
	gauge("sluice_memory_bytes", "Memory of the machine, or of the control group that the daemon is in, whichever is shorter of it.", nil,
		func(s *status.Strain) float64 { return float64(s.Capacity) })
	gauge("sluice_memory_used_bytes", "What of it can't be had without taking it from somebody.", nil,
		func(s *status.Strain) float64 { return float64(s.Used) })
	gauge("sluice_memory_growth_bytes_per_second", "What is used more of it in a second, over some two.", nil,
		func(s *status.Strain) float64 { return float64(s.Growth) })
	gauge("sluice_memory_room_bytes", "How much can be moved out of it still, to swap.", nil,
		func(s *status.Strain) float64 { return float64(s.Room) })
	gauge("sluice_memory_parked_bytes", "What of subjobs was moved out of it.", nil,
		func(s *status.Strain) float64 { return float64(s.Parked) })
	gauge("sluice_memory_stalled_ratio", "The share of time that was lost for want of it.", nil,
		func(s *status.Strain) float64 { return float64(s.Stall) / 1000 })
	const line, lineHelp = "sluice_memory_line_bytes",
		"Where it is not calm any more, where subjobs give way, and where the lowest is ended at once."
	gauge(line, lineHelp, prometheus.Labels{"line": "calm"}, func(s *status.Strain) float64 { return float64(s.Calm) })
	gauge(line, lineHelp, prometheus.Labels{"line": "severe"}, func(s *status.Strain) float64 { return float64(s.Severe) })
	gauge(line, lineHelp, prometheus.Labels{"line": "emergency"}, func(s *status.Strain) float64 { return float64(s.Emergency) })
	gauge("sluice_airlock_standing", "Subjobs that stand still for want of memory, or are told to.", nil,
		func(s *status.Strain) float64 { return float64(s.Standing) })
	for _, s := range memoryStates() {
		g := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_airlock_state", Help: "1 for what the machine's memory is like: off and silent, where nothing is known of it, " +
				"or its level.", ConstLabels: prometheus.Labels{"state": s},
		})
		r.MustRegister(g)
		m.states[s] = g
	}
	counter := func(name, help string, labels prometheus.Labels, of func(*status.Strain) float64) {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
		r.MustRegister(c)
		m.tally = append(m.tally, memoryTally{of, c})
	}
	const steps, stepsHelp = "sluice_airlock_subjobs_total",
		"Subjobs by what was done to them for the machine's memory: they stood still, went on, were asked to yield, or were ended; " +
			"killed ones were ended for memory by their supervisor or the kernel, as those who pass their slice's."
	counter(steps, stepsHelp, prometheus.Labels{"outcome": "suspended"}, func(s *status.Strain) float64 { return float64(s.Suspended) })
	counter(steps, stepsHelp, prometheus.Labels{"outcome": "recovered"}, func(s *status.Strain) float64 { return float64(s.Recovered) })
	counter(steps, stepsHelp, prometheus.Labels{"outcome": "readdressed"}, func(s *status.Strain) float64 { return float64(s.Readdressed) })
	counter(steps, stepsHelp, prometheus.Labels{"outcome": "reclaimed"}, func(s *status.Strain) float64 { return float64(s.Reclaimed) })
	counter(steps, stepsHelp, prometheus.Labels{"outcome": "killed"}, func(s *status.Strain) float64 { return float64(s.Killed) })
	counter("sluice_airlock_decisions_total", "Decisions that did anything.", nil,
		func(s *status.Strain) float64 { return float64(s.Decisions) })
	counter("sluice_airlock_suspended_seconds_total", "Time that subjobs stood still for want of memory.", nil,
		func(s *status.Strain) float64 { return s.Stood.Seconds() })
	counter("sluice_airlock_over_line_seconds_total", "Time for which the memory was over the severe line.", nil,
		func(s *status.Strain) float64 { return s.OverLine.Seconds() })
	m.show(memoryOff)
	return m
}

// count takes in how the memory stands now.
func (m *memory) count(off bool, s *status.Strain) {
	state := s.Level
	switch {
	case off:
		state = memoryOff
	case s.Old:
		state = memorySilent
	}
	m.show(state)
	if *s == m.last {
		return
	}
	for i := range m.gauges {
		m.gauges[i].gauge.Set(m.gauges[i].of(s))
	}
	for i := range m.tally {
		if more := m.tally[i].of(s) - m.tally[i].of(&m.last); more > 0 {
			m.tally[i].counter.Add(more)
		}
	}
	m.last = *s
}

func (m *memory) show(state string) {
	if state == m.state {
		return
	}
	if before := m.states[m.state]; before != nil {
		before.Set(0)
	}
	if g := m.states[state]; g != nil {
		g.Set(1)
	}
	m.state = state
}
