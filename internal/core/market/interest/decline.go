package interest

import (
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// mostRest bounds how long a job rests after it declined, which begins with Config.Retry and doubles.
const mostRest = time.Minute

// record is what the mechanism keeps of a job.
type record struct {
	// interested: it is interested in the window of the present round.
	interested bool
	declines   *declines // nil if it never did lately
}

// recordOf finds or makes the record of a job.
func recordOf(j *index.Job) *record {
	if x, ok := j.Record.(*record); ok {
		return x
	}
	x := &record{}
	j.Record = x
	return x
}

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

// backoff has jobs rest that declined. Invariant: a job with an alarm is in no order until that (index.Job.SetAside); the pause doubles
// with each decline in a row, up to mostRest.
type backoff struct {
	retry   time.Duration
	index   *index.Index
	stats   *status.Negotiation
	resting alarm.Heap[*index.Job]
}

// add notes that a job that was first in order for a window has cut no piece that fits: for what its atomizer refused, or what
// its agent did. It rests until an instant.
func (b *backoff) add(now quantity.Instant, j *index.Job, refusal atomizer.Refusal, text string) (until quantity.Instant) {
	x := recordOf(j)
	if x.declines == nil {
		x.declines = &declines{}
	}
	d := x.declines
	if now.Sub(d.until) > 2*mostRest {
		d.times = 0
	}
	d.times++
	d.until = now.Add(min(mostRest, b.retry<<min(d.times-1, 10)))
	d.refusal, d.text = refusal, text
	j.SetAside(d.until)
	x.interested = false
	j.Counts().Add(explain.Declined, now)
	b.stats.Declined++
	b.resting.Set(&d.slot, j, d.until)
	b.index.Invalidate(j)
	return d.until
}

// reset notes that a job has cut a piece that fits.
func (b *backoff) reset(j *index.Job) {
	if d := recordOf(j).declines; d != nil {
		d.times = 0
	}
}

// wake makes jobs that have rested answer again.
func (b *backoff) wake(now quantity.Instant) {
	for j := range b.resting.Past(now) {
		b.index.Changed(j)
	}
}

// forget a job that is over.
func (b *backoff) forget(j *index.Job) {
	if x := recordOf(j); x.declines != nil {
		b.resting.Set(&x.declines.slot, j, quantity.Never)
		x.declines = nil
	}
}

// latest is why a job has declined last.
func (b *backoff) latest(j *index.Job) (refusal atomizer.Refusal, text string) {
	d := recordOf(j).declines
	if d == nil {
		return refusal, ""
	}
	return d.refusal, d.text
}
