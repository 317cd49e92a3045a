package observe

import (
	"github.com/prometheus/client_golang/prometheus"
)

// archived are the metrics of the archive of jobs that are over. They may be set from any goroutine.
type archived struct {
	jobs, bytes, free      prometheus.Gauge
	filed, purged, dropped prometheus.Counter
	change                 prometheus.Histogram
}

func newArchived(r *prometheus.Registry) archived {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	a := archived{
		jobs:    gauge("sluice_archive_jobs", "Jobs that are over and that the archive keeps."),
		bytes:   gauge("sluice_archive_bytes", "Size of the archive's file in use, free space within it included."),
		free:    gauge("sluice_archive_free_bytes", "Space within the archive's file that is free for what comes."),
		filed:   counter("sluice_archive_filed_total", "Parts of jobs filed: of each job one by the gate and one by its home."),
		purged:  counter("sluice_archive_purged_total", "Jobs removed from the archive for good, or asked to be."),
		dropped: counter("sluice_archive_dropped_total", "Messages to the archive that found no room; they are said again."),
		change: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_archive_change_seconds", Help: "Time of one durable change of the archive.",
			Buckets: prometheus.ExponentialBuckets(25e-6, 2, 20),
		}),
	}
	r.MustRegister(a.change)
	return a
}
