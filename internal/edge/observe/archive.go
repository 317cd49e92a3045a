package observe

import "github.com/prometheus/client_golang/prometheus"

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
