package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// metrics are all of them. Names begin with sluice_ and units are base units; no label has more values than an enum, or
// pools than the daemon's file, so that neither jobs nor slices make series.
type metrics struct {
	registry *prometheus.Registry

	steps    *prometheus.CounterVec
	step     *prometheus.HistogramVec
	ended    *prometheus.CounterVec
	runtime  prometheus.Counter
	units    prometheus.Counter
	settled  *prometheus.CounterVec
	offered  prometheus.Counter
	filled   prometheus.Counter
	unfilled prometheus.Counter
	wait     prometheus.Observer
	jobs     *prometheus.GaugeVec
	finals   *prometheus.CounterVec
	slices   *prometheus.GaugeVec
	xids     *prometheus.CounterVec
	faults   *prometheus.CounterVec
	append   prometheus.Observer
	records  prometheus.Counter
	bytes    prometheus.Counter
	trouble  prometheus.Gauge
	hosts    *prometheus.HistogramVec
	archive  archived
	market   market
	memory   memory
}

func newMetrics() *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{promauto.With(r)}
	m := &metrics{
		registry: r,
		steps:    f.counters("sluice_steps_total", "Inputs taken by an actor.", "actor"),
		step:     f.durations("sluice_step_seconds", "Time that an actor took to decide on one input.", 4e-6, "actor"),
		ended:    f.counters("sluice_subjobs_ended_total", "Subjobs that ended, by outcome.", "outcome"),
		runtime:  f.counter("sluice_subjob_run_seconds_total", "Time that subjobs really ran."),
		units:    f.counter("sluice_units_committed_total", "Units of progress committed, over all jobs."),
		settled:  f.counters("sluice_claims_settled_total", "Claims that were committed or released.", "result"),
		offered: f.counter("sluice_windows_offered_total",
			"Stretches of idle slice time offered to the market; the rest of one that was sold in part is not counted again."),
		filled:   f.counter("sluice_windows_filled_total", "Leases made in offered windows."),
		unfilled: f.counter("sluice_windows_unfilled_seconds_total", "Offered time that passed without a lease, over all slices."),
		wait:     f.durations("sluice_job_wait_seconds", "Time from submission to a job's first start.", 0.05).WithLabelValues(),
		jobs:     f.gauges("sluice_jobs", "Jobs that are not over, by state.", "state"),
		finals:   f.counters("sluice_jobs_ended_total", "Jobs that are over, by final state.", "state"),
		slices:   f.gauges("sluice_slices", "Slices, by whether they can be sold.", "state"),
		xids:     f.counters("sluice_gpu_errors_total", "Errors that GPUs' drivers have told of, by Xid.", "xid"),
		faults:   f.counters("sluice_slice_faults_total", "Quarantines of slices whose GPU failed, by cause.", "cause"),
		append:   f.durations("sluice_journal_append_seconds", "Time of one durable append to the journal.", 25e-6).WithLabelValues(),
		records:  f.counter("sluice_journal_records_total", "Records appended to the journal."),
		bytes:    f.counter("sluice_journal_bytes_total", "Bytes of facts appended to the journal."),
		trouble: f.gauge("sluice_daemon_trouble",
			"1 while nothing is decided because the journal takes no more, or the node can start no subjob, else 0."),
		hosts: f.durations("sluice_host_wait_seconds",
			"Time that workloads outside Sluice waited for what subjobs had, from when that was heard until these were gone, by pool.",
			0.05, "pool"),
		archive: newArchived(f),
		market:  newMarket(f),
		memory:  newMemory(f),
	}
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

func (m *metrics) fact(f *protocol.Fact) {
	switch f.Kind {
	case protocol.LeaseMade:
		m.filled.Inc()
	case protocol.SubjobEnded:
		if r := f.Body.(*protocol.SubjobEnd).Result; r != nil {
			m.ended.WithLabelValues(r.Outcome.String()).Inc()
			m.runtime.Add(max(0, r.Ran()).Seconds())
		}
	case protocol.SliceFailed:
		m.faults.WithLabelValues(f.Body.(*health.Fault).Name()).Inc()
	case protocol.Committed:
		m.settled.WithLabelValues("committed").Inc()
		m.units.Add(float64(f.Body.(*protocol.ClaimEnd).Range.Len()))
	case protocol.Released:
		m.settled.WithLabelValues("released").Inc()
	default: // not counted here
	}
}

// archived are the metrics of the archive of jobs that are over. They may be set from any goroutine.
type archived struct {
	jobs, bytes, free      prometheus.Gauge
	filed, purged, dropped prometheus.Counter
	change                 prometheus.Observer
}

func newArchived(f factory) archived {
	return archived{
		jobs:    f.gauge("sluice_archive_jobs", "Jobs that are over and that the archive keeps."),
		bytes:   f.gauge("sluice_archive_bytes", "Size of the archive's file in use, free space within it included."),
		free:    f.gauge("sluice_archive_free_bytes", "Space within the archive's file that is free for what comes."),
		filed:   f.counter("sluice_archive_parts_filed_total", "Parts of jobs filed: of each job one by the gate and one by its home."),
		purged:  f.counter("sluice_archive_jobs_purged_total", "Jobs removed from the archive for good, or asked to be."),
		dropped: f.counter("sluice_archive_messages_dropped_total", "Messages to the archive that found no room; they are said again."),
		change:  f.durations("sluice_archive_change_seconds", "Time of one durable change of the archive.", 25e-6).WithLabelValues(),
	}
}
