package main

import (
	"errors"
	"time"

	"sluice.dev/sluice/bench/hpc2n"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
)

// hostJobs are those of the trace that ran, in its order, which come speed times as fast. A host ends a job at its limit; the traced one
// let some go on for a little.
func hostJobs(data string, speed float64) (jobs []job, err error) {
	err = hpc2n.Each(data, func(at time.Duration, x *trace.JobRecord) {
		if x.Requested > 0 {
			jobs = append(jobs, job{user: x.User, submitted: quantity.Instant(float64(at) / speed), run: min(x.Duration, x.Requested),
				limit: x.Requested, nodes: min(hpc2n.Nodes, int(x.GPUs+hpc2n.CPUs-1)/hpc2n.CPUs)})
		}
	})
	if err == nil && len(jobs) == 0 {
		err = errors.New("no job of the trace has run")
	}
	return jobs, err
}

// load is which part of the nodes' time jobs take, if all run as long as the trace goes on.
func load(jobs []job) float64 {
	var sum time.Duration
	for i := range jobs {
		sum += jobs[i].run * time.Duration(jobs[i].nodes)
	}
	return sum.Seconds() / hpc2n.Nodes / time.Duration(jobs[len(jobs)-1].submitted).Seconds()
}
