// Package helios reads what SenseTime published of its clusters (SC'21): the minute-by-minute state of virtual clusters
// (*_cluster_sequence_vc.csv), jobs and GPUs that run, wait and idle, which is the source of real gaps; and the log of jobs
// (cluster_log.csv).
package helios

import (
	"io"
	"strings"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	at = iota
	runningJobs
	pendingJobs
	totalJobs
	totalGPUs
	idleGPUs
	occupancy
	gpu   // a load: its jobs and GPUs stand in four columns
	large = gpu + 4
	small = large + 4
	sums  = small + 4 // totals of the loads
)

// Columns of the log of jobs.
const (
	jobID = iota
	user
	vc
	gpus
	cpus
	nodes
	state
	submitted
	started
	ended
	duration
	waited
)

// Format of the files. Records of a log are jobs, whose queue is the virtual cluster. Those of a sequence are states; the cluster is the
// file's name up to "_cluster_sequence". The published totals are checked against their parts, and left out with the occupancy.
func Format() trace.Format {
	return trace.Format{Name: "helios", Doc: "state of SenseTime's virtual clusters minute by minute, and jobs, 2020 (CSV)",
		Kinds: []trace.Kind{trace.State, trace.Job}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	cluster, _, _ := strings.Cut(trace.Stem(file), "_cluster_sequence")
	return trace.OpenCSV(r, file, trace.Sheet{
		File: "*_cluster_sequence_vc.csv",
		Columns: []string{
			at: "time", runningJobs: "running_job_num", pendingJobs: "pending_job_num", totalJobs: "total_job_num",
			totalGPUs: "total_gpu_num", idleGPUs: "idle_gpu_num", occupancy: "gpu_utilization",
			gpu: "running_gpujob_num", gpu + 1: "pending_gpujob_num", gpu + 2: "running_gpu_num", gpu + 3: "pending_gpu_num",
			large: "running_job_num_noless_8", large + 1: "pending_job_num_noless_8",
			large + 2: "running_gpu_num_noless_8", large + 3: "pending_gpu_num_noless_8",
			small: "running_job_num_less_8", small + 1: "pending_job_num_less_8",
			small + 2: "running_gpu_num_less_8", small + 3: "pending_gpu_num_less_8",
			sums: "total_gpujob_num", sums + 1: "total_job_num_noless_8", sums + 2: "total_job_num_less_8",
			sums + 3: "total_gpu_num_noless_8", sums + 4: "total_gpu_num_less_8",
		},
		Parse: func(l *trace.Line, r *trace.Record) { parse(l, r, cluster) },
	}, trace.Sheet{
		File: "cluster_log.csv",
		Columns: []string{
			jobID: "job_id", user: "user", vc: "vc", gpus: "gpu_num", cpus: "cpu_num", nodes: "node_num", state: "state",
			submitted: "submit_time", started: "start_time", ended: "end_time", duration: "duration", waited: "queue",
		},
		Parse: job,
	})
}

// Treatments of rows as exports of Slurm's accounting have them.
const (
	noSubmission = "no submission time: taken as unknown"
	noTime       = "time that is not given, as None: taken as unknown"
	noCount      = "number that is not given: taken as unknown"
	noName       = "name that is not given: taken as unknown"
	early        = "start before the submission: taken as unknown"
	negative     = "negative length of time: taken as unknown"
	fraction     = "whole number written with a fraction of zeros: taken as whole"
)

// row is a line of the log.
type row struct{ *trace.Line }

// job reads a line of the log. Times of a job that never began may be empty. What is missing otherwise is treated.
func job(line *trace.Line, r *trace.Record) {
	l := row{line}
	r.Kind = trace.Job
	if f, ok := l.given(submitted, noSubmission); ok {
		r.At = f.Date()
	}
	r.Job = trace.UnknownJob()
	j := &r.Job
	j.ID, j.User, j.Queue, j.Status = l.Column(jobID).ID(), l.name(user), l.name(vc), l.name(state)
	j.GPUs, j.Milli = l.count(gpus), 1000
	if n := l.count(cpus); n != trace.Unknown {
		j.CPU = 1000 * n
	}
	l.count(nodes)
	if f, ok := l.time(started); ok {
		if j.Start = f.Date(); r.At != trace.Unknown && j.Start < r.At {
			l.Treat(early)
			j.Start = trace.Unknown
		}
	}
	if f, ok := l.time(ended); ok {
		f.Date()
	}
	l.length(waited)
	j.Duration = l.length(duration)
}

// given is a column's field if it has a value, and the treatment otherwise.
func (l row) given(column int, treatment string) (trace.Field, bool) {
	f := l.Column(column)
	switch string(f.Bytes()) {
	case "", "None", "none", "NaN", "nan", "NaT", "NULL", "null", "NA", "N/A", "Unknown":
		l.Treat(treatment)
		return f, false
	}
	return f, true
}

// time is given for what may be empty.
func (l row) time(column int) (trace.Field, bool) {
	if f := l.Column(column); f.Empty() {
		return f, false
	}
	return l.given(column, noTime)
}

func (l row) length(column int) time.Duration {
	f, ok := l.time(column)
	if !ok {
		return trace.Unknown
	}
	rest, minus := f.Minus()
	n := rest.Seconds()
	if minus && n > 0 {
		l.Treat(negative)
		return trace.Unknown
	}
	return n
}

func (l row) count(column int) int64 {
	f, ok := l.given(column, noCount)
	if !ok {
		return trace.Unknown
	}
	whole, written := f.NoFraction()
	if written {
		l.Treat(fraction)
	}
	return whole.Count()
}

func (l row) name(column int) string {
	if f, ok := l.given(column, noName); ok {
		return f.Name()
	}
	return ""
}

func parse(l *trace.Line, r *trace.Record, cluster string) {
	r.Kind = trace.State
	r.At = l.Column(at).Date()
	s := &r.State
	s.Cluster = cluster
	s.GPUs, s.Idle = l.Column(totalGPUs).Count(), l.Column(idleGPUs).Count()
	s.RunningJobs, s.PendingJobs = l.Column(runningJobs).Count(), l.Column(pendingJobs).Count()
	s.GPU, s.Large, s.Small = load(l, gpu), load(l, large), load(l, small)
	l.Column(occupancy).Milli()

	sum(l, totalGPUs, s.GPU.RunningGPUs+s.Idle, "running and idle GPUs together")
	sum(l, totalJobs, s.RunningJobs+s.PendingJobs, "running and pending jobs together")
	const together = "its running and pending part together"
	sum(l, sums, s.GPU.RunningJobs+s.GPU.PendingJobs, together)
	sum(l, sums+1, s.Large.RunningJobs+s.Large.PendingJobs, together)
	sum(l, sums+2, s.Small.RunningJobs+s.Small.PendingJobs, together)
	sum(l, sums+3, s.Large.RunningGPUs+s.Large.PendingGPUs, together)
	sum(l, sums+4, s.Small.RunningGPUs+s.Small.PendingGPUs, together)
	const bySize = "the parts of eight GPUs or more and of fewer together"
	sum(l, gpu, s.Large.RunningJobs+s.Small.RunningJobs, bySize)
	sum(l, gpu+1, s.Large.PendingJobs+s.Small.PendingJobs, bySize)
	// Jobs of one minute may follow each other on the same GPUs: the published sum is cut at the GPUs there are.
	sum(l, gpu+2, min(s.GPUs, s.Large.RunningGPUs+s.Small.RunningGPUs), bySize)
	sum(l, gpu+3, s.Large.PendingGPUs+s.Small.PendingGPUs, bySize)
}

func load(l *trace.Line, first int) trace.Load {
	return trace.Load{
		RunningJobs: l.Column(first).Count(), PendingJobs: l.Column(first + 1).Count(),
		RunningGPUs: l.Column(first + 2).Count(), PendingGPUs: l.Column(first + 3).Count(),
	}
}

func sum(l *trace.Line, column int, want int64, expected string) {
	if f := l.Column(column); f.Count() != want {
		f.Fail(expected)
	}
}
