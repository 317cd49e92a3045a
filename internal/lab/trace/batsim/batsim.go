// Package batsim reads what the Batsim simulator says of each job after a run (out_jobs.csv): when it was sent, what it
// asked for, when it started and how long it ran. It is the reference for backfilling.
package batsim

import (
	"io"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	id = iota
	workload
	submitted
	processors
	requested
	started
	execution
	finished
	success
	ownID
	waiting
	turnaround
	stretch
	energy
	allocated
)

// Format of the file. Records are jobs: GPUs are the hosts a job asked for, its status is "1" if it succeeded. Waiting and
// turnaround time, stretch, energy and the list of hosts are checked and left out: they follow from the rest, or belong to
// the simulated machine.
func Format() trace.Format {
	return trace.Format{Name: "batsim",
		Doc:   "jobs of a run of the Batsim simulator, with their start times (its PREFIX_jobs.csv, such as out_jobs.csv)",
		Kinds: []trace.Kind{trace.Job}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return trace.OpenCSV(r, file, trace.Sheet{
		File: "Batsim's PREFIX_jobs.csv (not its _schedule.csv)",
		Columns: []string{
			id: "job_id", workload: "workload_name", submitted: "submission_time", processors: "requested_number_of_resources",
			requested: "requested_time", started: "starting_time", execution: "execution_time", finished: "finish_time", success: "success",
		},
		Optional: []string{"hacky_job_id", "waiting_time", "turnaround_time", "stretch", "consumed_energy", "allocated_resources"},
		Parse:    parse,
	})
}

func parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Job
	r.At = l.Column(submitted).Seconds()
	r.Job = trace.UnknownJob()
	job := &r.Job
	job.ID = l.Column(id).ID()
	job.Queue = l.Column(workload).Name()
	job.GPUs, job.Milli = l.Column(processors).Count(), 1000
	job.Requested = l.Column(requested).Seconds()
	job.Start, job.Duration = l.Column(started).Seconds(), l.Column(execution).Seconds()
	job.Status = l.Column(success).Name()
	if job.Start < r.At {
		l.Column(started).Fail("a time that is not before submission_time")
	}
	// Printed to the microsecond: the sum of two rounded numbers may differ in the last digit.
	if late := job.Start + job.Duration - l.Column(finished).Seconds(); late.Abs() > 2000 {
		l.Column(finished).Fail("starting_time and execution_time together")
	}
	for i := waiting; i <= energy; i++ {
		if l.Has(i) {
			l.Column(i).Float()
		}
	}
	for _, i := range [...]int{ownID, allocated} {
		if l.Has(i) {
			l.Column(i).ID()
		}
	}
}
