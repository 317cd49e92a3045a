package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// metrics are all of them. Names begin with sluice_ and units are base units; no label has more values than an enum, so
// that neither jobs nor slices make series.
type metrics struct {
	registry *prometheus.Registry

	steps      *prometheus.CounterVec
	step       *prometheus.HistogramVec
	ended      *prometheus.CounterVec
	runtime    prometheus.Counter
	units      prometheus.Counter
	settled    *prometheus.CounterVec
	offered    prometheus.Counter
	filled     prometheus.Counter
	unanswered prometheus.Counter
	wait       prometheus.Histogram
	jobs       *prometheus.GaugeVec
	finals     *prometheus.CounterVec
	slices     *prometheus.GaugeVec
	xids       *prometheus.CounterVec
	faults     *prometheus.CounterVec
	append     prometheus.Histogram
	records    prometheus.Counter
	bytes      prometheus.Counter
	trouble    prometheus.Gauge
	archive    archived
}

func newMetrics() *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	histogram := func(name, help string, first, factor float64, n int) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor,
			n)})
		r.MustRegister(h)
		return h
	}
	m := &metrics{
		registry: r,
		steps:    counters("sluice_steps_total", "Inputs taken by an actor.", "actor"),
		step: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_step_seconds", Help: "Time that an actor took to decide on one input.",
			Buckets: prometheus.ExponentialBuckets(4e-6, 2, 20),
		}, []string{"actor"}),
		ended:   counters("sluice_subjobs_ended_total", "Subjobs that ended, by outcome.", "outcome"),
		runtime: counter("sluice_subjob_run_seconds_total", "Time that subjobs really ran."),
		units:   counter("sluice_units_committed_total", "Units of progress committed, over all jobs."),
		settled: counters("sluice_claims_settled_total", "Claims that were committed or released.", "result"),
		offered: counter("sluice_windows_offered_total",
			"Stretches of idle slice time offered to the market; the rest of one that was sold in part is not counted again."),
		filled:     counter("sluice_windows_filled_total", "Leases made in offered gaps."),
		unanswered: counter("sluice_gap_unanswered_seconds_total", "Offered time that passed without a lease, over all slices."),
		wait:       histogram("sluice_job_wait_seconds", "Time from submission to a job's first start.", 0.05, 2, 20),
		jobs:       gauges("sluice_jobs", "Jobs that are not over, by state.", "state"),
		finals:     counters("sluice_jobs_ended_total", "Jobs that are over, by final state.", "state"),
		slices:     gauges("sluice_slices", "Slices, by whether they can be sold.", "state"),
		xids:       counters("sluice_gpu_errors_total", "Errors that GPUs' drivers have told of, by Xid.", "xid"),
		faults:     counters("sluice_slice_faults_total", "Quarantines of slices whose GPU failed, by cause.", "cause"),
		append:     histogram("sluice_journal_append_seconds", "Time of one durable append to the journal.", 25e-6, 2, 20),
		records:    counter("sluice_journal_records_total", "Records appended to the journal."),
		bytes:      counter("sluice_journal_bytes_total", "Bytes of facts appended to the journal."),
	}
	m.trouble = prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_trouble", Help: "1 while nothing is decided because the journal " +
		"takes no more, or the node can start no subjob, else 0."})
	r.MustRegister(m.trouble)
	r.MustRegister(m.step)
	m.archive = newArchived(r)
	// Every series is there from the start: a rate over one that appears later misses its first step.
	for o := job.Done; int(o) < job.Outcomes; o++ {
		m.ended.WithLabelValues(o.String())
	}
	for c := health.Lost; c < health.Causes; c++ {
		m.faults.WithLabelValues(c.String())
	}
	for s := job.Finished; s <= job.Impossible; s++ {
		m.finals.WithLabelValues(s.String())
	}
	for s := job.Waiting; s < job.Finished; s++ {
		m.jobs.WithLabelValues(s.String())
	}
	for _, s := range []string{"committed", "released"} {
		m.settled.WithLabelValues(s)
	}
	for _, s := range []string{usable, unusable} {
		m.slices.WithLabelValues(s)
	}
	for _, role := range []protocol.Role{protocol.Gate, protocol.Zone, protocol.Node} {
		m.steps.WithLabelValues(roleName(role))
		m.step.WithLabelValues(roleName(role))
	}
	return m
}

// inbox shows the load of one kind of sender.
func (m *metrics) inbox(from string, load func() (waiting int, dropped uint64)) {
	of := prometheus.Labels{"from": from}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_inbox_messages", Help: "Messages that wait to be taken, by who sent " +
			"them.", ConstLabels: of},
			func() float64 { n, _ := load(); return float64(n) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_inbox_dropped_total", Help: "Messages dropped because too many " +
			"waited, by who sent them; they are said again.", ConstLabels: of},
			func() float64 { _, n := load(); return float64(n) }))
}

// Values of the label state of sluice_slices.
const (
	usable   = "usable"
	unusable = "unusable"
)

func roleName(r protocol.Role) string {
	switch r {
	case protocol.Gate:
		return "gate"
	case protocol.Zone:
		return "zone"
	case protocol.Node:
		return "node"
	default:
		return "other"
	}
}

func (m *metrics) taken(r protocol.Role) { m.steps.WithLabelValues(roleName(r)).Inc() }

func (m *metrics) fact(f *protocol.Fact) {
	switch f.Kind {
	case protocol.LeaseMade:
		m.filled.Inc()
	case protocol.SubjobEnded:
		if f.Result != nil {
			m.ended.WithLabelValues(f.Result.Outcome.String()).Inc()
			m.runtime.Add(max(0, f.Result.Ran()).Seconds())
		}
	case protocol.SliceFailed:
		m.faults.WithLabelValues(f.Fault.Name()).Inc()
	case protocol.Committed:
		m.settled.WithLabelValues("committed").Inc()
		m.units.Add(float64(f.Range.Len()))
	case protocol.Released:
		m.settled.WithLabelValues("released").Inc()
	default: // not counted here
	}
}

func (m *metrics) vitals(v *protocol.Vitals) {
	for _, x := range v.Errors {
		m.xids.WithLabelValues(health.Label(x.Code)).Inc()
	}
}

func (m *metrics) appended(took time.Duration, records, bytes int) {
	m.append.Observe(took.Seconds())
	m.records.Add(float64(records))
	m.bytes.Add(float64(bytes))
}

func (m *metrics) setTrouble(on bool) {
	if on {
		m.trouble.Set(1)
	} else {
		m.trouble.Set(0)
	}
}
