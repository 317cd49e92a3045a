// Package philly reads the jobs of Microsoft's Philly cluster as the Pollux and Sia artifacts publish them: a CSV of
// timestamp, duration in seconds, num_gpus, gpu_time (their product) and cluster (a virtual cluster).
package philly

import (
	"io"
	"math/bits"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	timestamp = iota
	duration
	gpus
	gpuTime
	cluster
)

// Format of the file. Records are jobs without ids.
func Format() trace.Format {
	return trace.Format{Name: "philly", Doc: "jobs of Microsoft's Philly GPU cluster, 2017 (CSV)", Kinds: []trace.Kind{trace.Job},
		Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return trace.OpenCSV(r, file, trace.Sheet{
		Columns: []string{timestamp: "timestamp", duration: "duration", gpus: "num_gpus", gpuTime: "gpu_time", cluster: "cluster"},
		Parse:   parse,
	})
}

func parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Job
	r.At = l.Column(timestamp).Date()
	r.Job = trace.UnknownJob()
	r.Job.Duration = l.Column(duration).Seconds()
	r.Job.GPUs, r.Job.Milli = l.Column(gpus).Count(), 1000
	r.Job.Queue = l.Column(cluster).Name()
	product := l.Column(gpuTime)
	// A damaged line would be read as another job; the published product tells.
	if over, want := bits.Mul64(uint64(r.Job.Duration), uint64(r.Job.GPUs)); over > 0 || uint64(product.Seconds()) != want {
		product.Fail("duration times num_gpus")
	}
}
