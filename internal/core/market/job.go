package market

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Job is one job as a floor keeps it; whoever owns the job holds it, with its side as the Demand. All of it is soft.
type Job struct {
	Demand
	// active is 1 + its place among the jobs of the floor, 0 if it is none of them.
	active int
	// generation of the last change that can have made it eligible.
	generation uint64
	counts     Counts
	// losses since it was last served, one for each class of slices.
	losses []loss
	// due is when the job is late, Never if it is not to be; slots keep its alarm, inLate: it is among those that are.
	due    quantity.Instant
	slots  struct{ due int }
	inLate bool
	eligibility
	// quotes that are kept of it, one for each class for whose windows it was asked lately.
	quotes *quote
	// agent of an external job; nil if none ever was there.
	agent *agent
	// declines of it lately; nil if it never did.
	declines *declines
}

// Activate brings a job to the floor. What changed of it before was nobody's news.
func (f *Floor) Activate(j *Job) {
	j.generation = 0
	f.jobs = append(f.jobs, j)
	j.active = len(f.jobs)
	f.expect(j)
}

// Retire takes a job off the floor: it is over, or nothing of it is left to sell.
func (f *Floor) Retire(j *Job) {
	if j.active == 0 {
		return
	}
	last := f.jobs[len(f.jobs)-1]
	f.jobs[j.active-1], last.active = last, j.active
	f.jobs[len(f.jobs)-1] = nil
	f.jobs = f.jobs[:len(f.jobs)-1]
	j.active = 0
	if j.Attended() {
		f.hangUp(j)
		f.attending--
		*j.agent = agent{recall: j.agent.recall}
	}
	j.losses = nil
	f.forgetDeclines(j)
	f.dues.Set(&j.slots.due, j, quantity.Never)
	f.InvalidateJob(j)
}

// Changed says that a job may be eligible where it was not before: windows that stand are offered to it too.
func (f *Floor) Changed(j *Job) {
	if j.active > 0 {
		f.fresh.Add(&j.fresh, j)
	}
	f.generation++
	j.generation = f.generation
	f.InvalidateJob(j)
}

// InvalidateJob says that what a job answers to windows may be another than before.
func (f *Floor) InvalidateJob(j *Job) {
	f.stale.Add(&j.stale, j)
}

// Served says that something was asked for on behalf of a job: what it lost before does not count any more.
func (f *Floor) Served(j *Job) { j.losses = j.losses[:0] }

// Waited is how long a job has gone without being served.
func (j *Job) Waited(now quantity.Instant) time.Duration {
	return max(0, now.Sub(j.since()))
}

// since is when its present wait began.
func (j *Job) since() quantity.Instant { return max(j.Demand.Submitted(), j.Demand.Served()) }

// deadline is the owner's, Never if none was given.
func (j *Job) deadline() quantity.Instant {
	if d := j.Spec().Deadline; d != 0 {
		return d
	}
	return quantity.Never
}

func byName(a, b *Job) int { return cmp.Compare(a.Name(), b.Name()) }
