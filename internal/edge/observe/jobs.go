package observe

import (
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
	open    map[jobKey]*openJob
	leases  map[tokenKey]jobKey
}

type openJob struct {
	state     job.State
	held      bool
	submitted quantity.Instant
	started   bool
	leases    int
}

// fact follows a job from JobAccepted to Ended. counted is false for facts of earlier boots, which were counted then.
func (j *jobs) fact(f *protocol.Fact, counted bool) {
	switch f.Kind {
	case protocol.JobAccepted:
		if !f.Flag { // one that is taken back from the archive is over; what comes behind it says if it lives again
			j.see(f.Job, f.At)
		}
	case protocol.HomeTaken, protocol.JobRequeued, protocol.HomeReopened:
		j.see(f.Job, f.At)
	case protocol.HomeKept:
		if r := f.Record; r != nil && !r.Verdict.State.Final() {
			o := j.see(r.Job, r.Submitted)
			o.held, o.started = r.Held, r.Started != 0
			j.update(o)
		} else if r != nil {
			j.drop(r.Job)
		}
	case protocol.Ended:
		if j.drop(f.Job) && counted {
			j.metrics.finals.WithLabelValues(f.Verdict.State.String()).Inc()
		}
	case protocol.JobClosed:
		if j.drop(f.Job) && counted { // closed without ever having had a home
			j.metrics.finals.WithLabelValues(f.Verdict.State.String()).Inc()
		}
	case protocol.JobForgotten, protocol.HomeDropped:
		j.drop(f.Job)
	case protocol.JobHeld, protocol.HomeHeld:
		if o := j.open[f.Job]; o != nil {
			o.held = f.Flag
			j.update(o)
		}
	case protocol.LeaseMade:
		j.leases[f.Token] = f.Job
		if o := j.open[f.Job]; o != nil {
			o.leases++
			j.update(o)
		}
	case protocol.SubjobStarted:
		if o := j.open[j.leases[f.Token]]; o != nil && !o.started {
			o.started = true
			if counted {
				j.metrics.wait.Observe(max(0, f.At.Sub(o.submitted)).Seconds())
			}
		}
	case protocol.SubjobEnded:
		o := j.open[j.leases[f.Token]]
		if _, ok := j.leases[f.Token]; ok && o != nil {
			o.leases--
			j.update(o)
		}
		delete(j.leases, f.Token)
	}
}

func (j *jobs) see(id job.ID, submitted quantity.Instant) *openJob {
	o := j.open[id]
	if o == nil {
		o = &openJob{submitted: submitted}
		j.open[id] = o
		j.metrics.jobs.WithLabelValues(o.state.String()).Inc()
	}
	return o
}

func (j *jobs) drop(id job.ID) bool {
	o := j.open[id]
	if o == nil {
		return false
	}
	delete(j.open, id)
	j.metrics.jobs.WithLabelValues(o.state.String()).Dec()
	return true
}

func (j *jobs) update(o *openJob) {
	s := job.Waiting
	switch {
	case o.leases > 0:
		s = job.Running
	case o.held:
		s = job.Paused
	}
	if s != o.state {
		j.metrics.jobs.WithLabelValues(o.state.String()).Dec()
		j.metrics.jobs.WithLabelValues(s.String()).Inc()
		o.state = s
	}
}
