package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// memory is the metrics of the machine's memory, and of what is done where it runs out.
type memory struct {
	last   status.Strain
	shown  []shown[status.Strain]
	states *prometheus.GaugeVec
	state  string
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

func newMemory(f factory) (m memory) {
	add := func(g prometheus.Gauge, of func(*status.Strain) float64) {
		m.shown = append(m.shown, shown[status.Strain]{of: of, gauge: g})
	}
	gauge := func(g prometheus.Gauge, of func(*status.Strain) quantity.Amount) {
		add(g, func(s *status.Strain) float64 { return float64(of(s)) })
	}
	gauge(f.gauge("sluice_memory_capacity_bytes",
		"Memory of the machine, or of the control group that the daemon is in, whichever is shorter of it."),
		func(s *status.Strain) quantity.Amount { return s.Capacity })
	gauge(f.gauge("sluice_memory_used_bytes", "What of it can't be had without taking it from somebody."),
		func(s *status.Strain) quantity.Amount { return s.Used })
	gauge(f.gauge("sluice_memory_growth_bytes_per_second", "What is used more of it in a second, over some two."),
		func(s *status.Strain) quantity.Amount { return s.Growth })
	gauge(f.gauge("sluice_memory_swap_free_bytes", "How much of it can still be moved to swap."),
		func(s *status.Strain) quantity.Amount { return s.Room })
	gauge(f.gauge("sluice_memory_swapped_bytes", "What of subjobs was moved out of it."),
		func(s *status.Strain) quantity.Amount { return s.Parked })
	line := f.gauges("sluice_memory_line_bytes",
		"Where it is not calm any more, where subjobs give way, and where the lowest is ended at once.", "line")
	gauge(line.WithLabelValues("calm"), func(s *status.Strain) quantity.Amount { return s.Calm })
	gauge(line.WithLabelValues("severe"), func(s *status.Strain) quantity.Amount { return s.Severe })
	gauge(line.WithLabelValues("emergency"), func(s *status.Strain) quantity.Amount { return s.Emergency })
	add(f.gauge("sluice_airlock_suspended_subjobs", "Subjobs suspended for want of memory, or told to be."),
		func(s *status.Strain) float64 { return float64(s.Standing) })
	add(f.gauge("sluice_memory_stalled_ratio", "The share of time that was lost for want of it."),
		func(s *status.Strain) float64 { return float64(s.Stall) / 1000 })
	m.states = f.gauges("sluice_airlock_state",
		"1 for what the machine's memory is like: off and silent, where nothing is known of it, or its level.", "state")
	for _, s := range memoryStates() {
		m.states.WithLabelValues(s)
	}
	counter := func(c prometheus.Counter, of func(*status.Strain) float64) {
		m.shown = append(m.shown, shown[status.Strain]{of: of, counter: c})
	}
	subjobs := f.counters("sluice_airlock_subjobs_total",
		"Subjobs by what was done to them for the machine's memory: they were suspended, went on, were asked to yield, or were ended; "+
			"killed ones were ended for memory by their supervisor or the kernel, as those who pass their slice's.", "outcome")
	counter(subjobs.WithLabelValues("suspended"), func(s *status.Strain) float64 { return float64(s.Suspended) })
	counter(subjobs.WithLabelValues("recovered"), func(s *status.Strain) float64 { return float64(s.Recovered) })
	counter(subjobs.WithLabelValues("readdressed"), func(s *status.Strain) float64 { return float64(s.Readdressed) })
	counter(subjobs.WithLabelValues("reclaimed"), func(s *status.Strain) float64 { return float64(s.Reclaimed) })
	counter(subjobs.WithLabelValues("killed"), func(s *status.Strain) float64 { return float64(s.Killed) })
	counter(f.counter("sluice_airlock_decisions_total", "Decisions that did anything."),
		func(s *status.Strain) float64 { return float64(s.Decisions) })
	counter(f.counter("sluice_airlock_suspended_seconds_total", "Time for which subjobs were suspended for want of memory."),
		func(s *status.Strain) float64 { return s.Stood.Seconds() })
	counter(f.counter("sluice_airlock_over_line_seconds_total", "Time for which the memory was over the severe line."),
		func(s *status.Strain) float64 { return s.OverLine.Seconds() })
	m.show(memoryOff)
	return m
}

// count records the present state of the memory.
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
	for _, one := range m.shown {
		one.show(s, &m.last)
	}
	m.last = *s
}

func (m *memory) show(state string) {
	if m.state != "" {
		m.states.WithLabelValues(m.state).Set(0)
	}
	m.states.WithLabelValues(state).Set(1)
	m.state = state
}
