package main

import (
	"fmt"
	"time"

	"sluice.dev/sluice/bench/hpc2n"
	"sluice.dev/sluice/internal/lab/trace"
)

// hostJob is a job of the host's own users.
type hostJob struct {
	// at is when it is submitted, since the start of the stretch; run how long it runs, limit what its user asked for, all compressed.
	at, run, limit time.Duration
	nodes          int
}

// stretch is what of a trace is played, how fast, and on how many nodes.
type stretch struct {
	from, length time.Duration
	speed        float64
	nodes        int
}

// hostJobs are those of a stretch of the trace that ran, in its order: each has as large a part of the nodes as it had of the traced
// cluster.
func hostJobs(data string, s stretch) (jobs []hostJob, err error) {
	err = hpc2n.Each(data, func(at time.Duration, j *trace.JobRecord) {
		if at -= s.from; at < 0 || at >= s.length {
			return
		}
		const traced = hpc2n.Nodes * hpc2n.CPUs
		short := func(d time.Duration) time.Duration { return time.Duration(float64(d) / s.speed) }
		n := (int(j.GPUs)*s.nodes + traced - 1) / traced
		jobs = append(jobs, hostJob{at: short(at), run: short(j.Duration), limit: short(max(j.Requested, j.Duration)),
			nodes: min(n, s.nodes)})
	})
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("no job of the trace begins between %v and %v", s.from, s.from+s.length)
	}
	return jobs, err
}
