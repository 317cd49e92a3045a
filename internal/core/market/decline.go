package market

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostRest bounds how long a job rests after it declined, which begins with FloorConfig.Retry and doubles.
const mostRest = time.Minute

// declines of a job in a row: windows that it was first in order for, and cut no piece of that fits. Each costs others the time in
// which it was asked, so it is asked less. Soft state: a floor that comes up has forgotten them.
type declines struct {
	// times in a row: since it was last sold something.
	times int
	// until it rests, and signals for nothing.
	until quantity.Instant
	// refusal is its atomizer's, text what its agent did, or did not.
	refusal atomizer.Refusal
	text    string
	// slot is its alarm among those of jobs that rest.
	slot int
}

// Ineligible is why the job is sold nothing at all now, Eligible if it may be.
func (j *Job) Ineligible(now quantity.Instant) Reason {
	if why := j.Demand.Ineligible(now); why != Eligible || j.declines == nil || j.declines.until <= now {
		return why
	}
	return Aside
}

// Declining is why a job has declined last, and until when it rests; an instant that has passed if it does not.
func (j *Job) Declining() (refusal atomizer.Refusal, text string, until quantity.Instant) {
	if j.declines == nil {
		return refusal, "", 0
	}
	return j.declines.refusal, j.declines.text, j.declines.until
}

// decline notes that a job that was first in order for a window has cut no piece that fits: for what its atomizer refused, or what
// its agent did. It rests.
func (f *Floor) decline(now quantity.Instant, j *Job, refusal atomizer.Refusal, text string) {
	if j.declines == nil {
		j.declines = &declines{}
	}
	d := j.declines
	if now.Sub(d.until) > 2*mostRest {
		d.times = 0
	}
	d.times++
	d.until = now.Add(min(mostRest, f.cfg.Retry<<min(d.times-1, 10)))
	d.refusal, d.text = refusal, text
	j.bids = false
	j.counts.add(Declined, now)
	f.stats.Declined++
	f.resting.Set(&d.slot, j, d.until)
	f.InvalidateJob(j)
}

// accepts notes that a job has cut a piece that fits.
func (f *Floor) accepts(j *Job) {
	if j.declines != nil {
		j.declines.times = 0
	}
}

// wakeDecliners has the jobs answer again that have rested.
func (f *Floor) wakeDecliners(now quantity.Instant) {
	for {
		j, ok := f.resting.Due(now)
		if !ok {
			return
		}
		f.Changed(j)
	}
}

// forgetDeclines of a job that is over.
func (f *Floor) forgetDeclines(j *Job) {
	if j.declines != nil {
		f.resting.Set(&j.declines.slot, j, quantity.Never)
		j.declines = nil
	}
}
