package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

type (
	jobKey   = job.ID
	sliceKey = job.SliceID
	tokenKey = job.Token
)

// jobs counts the jobs that are not over by state. It holds one small record for each of them and one entry for each
// lease, so the gate's limits and the slices bound it.
type jobs struct {
	metrics *metrics
	// gauges of the states that jobs have been in, found once.
	gauges [job.Impossible + 1]prometheus.Gauge
	open   map[jobKey]openJob
	leases map[tokenKey]jobKey
}

type openJob struct {
	submitted       quantity.Instant
	leases          int32
	state           job.State
	paused, started bool
}

// fact follows a job from JobAccepted to Ended. counted is false for facts of earlier boots, which were counted then.
func (j *jobs) fact(f *protocol.Fact, counted bool) {
	switch f.Kind {
	case protocol.JobAccepted:
		// a job recalled from the archive is over; later facts show if it lives again
		if !f.Body.(*protocol.Acceptance).Recalled {
			j.see(f.Job, f.At)
		}
	case protocol.HomeTaken, protocol.JobRequeued, protocol.HomeReopened:
		j.see(f.Job, f.At)
	case protocol.HomeKept:
		if r := f.Body.(*protocol.Keeping).Record; r.Verdict.State.Final() {
			j.drop(r.Job)
		} else {
			j.see(r.Job, r.Submitted)
			j.change(r.Job, func(o *openJob) { o.paused, o.started = r.Paused, r.Started != 0 })
		}
	case protocol.Ended, protocol.JobClosed: // closed alone is one that never had a home
		if j.drop(f.Job) && counted {
			j.metrics.finals.WithLabelValues(f.Body.(*protocol.Final).Verdict.State.String()).Inc()
		}
	case protocol.JobForgotten, protocol.HomeDropped:
		j.drop(f.Job)
	case protocol.JobPaused, protocol.HomePaused:
		j.change(f.Job, func(o *openJob) { o.paused = f.Body.(*protocol.JobPause).Paused })
	case protocol.LeaseMade:
		j.leases[f.Token] = f.Job
		j.change(f.Job, func(o *openJob) { o.leases++ })
	case protocol.SubjobStarted:
		j.change(j.leases[f.Token], func(o *openJob) {
			if counted && !o.started {
				j.metrics.wait.Observe(max(0, f.At.Sub(o.submitted)).Seconds())
			}
			o.started = true
		})
	case protocol.SubjobEnded:
		if id, ok := j.leases[f.Token]; ok {
			j.change(id, func(o *openJob) { o.leases-- })
		}
		delete(j.leases, f.Token)
	}
}

// in counts the jobs in a state.
func (j *jobs) in(s job.State) prometheus.Gauge {
	if j.gauges[s] == nil {
		j.gauges[s] = j.metrics.jobs.WithLabelValues(s.String())
	}
	return j.gauges[s]
}

// see makes the record of a job that has none.
func (j *jobs) see(id job.ID, submitted quantity.Instant) {
	if _, known := j.open[id]; !known {
		o := openJob{submitted: submitted}
		j.open[id] = o
		j.in(o.state).Inc()
	}
}

func (j *jobs) drop(id job.ID) bool {
	o, known := j.open[id]
	if !known {
		return false
	}
	delete(j.open, id)
	j.in(o.state).Dec()
	return true
}

// change changes the record of a job that has one, and counts the job by the state that follows.
func (j *jobs) change(id job.ID, how func(*openJob)) {
	o, known := j.open[id]
	if !known {
		return
	}
	how(&o)
	s := job.Waiting
	switch {
	case o.leases > 0:
		s = job.Running
	case o.paused:
		s = job.Paused
	}
	if s != o.state {
		j.in(o.state).Dec()
		j.in(s).Inc()
		o.state = s
	}
	j.open[id] = o
}
