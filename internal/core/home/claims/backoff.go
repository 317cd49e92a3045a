package claims

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Delays makes jobs wait, or avoid slices, after trouble. Invariant: each job that avoids a slice has an alarm for when that ends, and each
// that pauses one for when the pause ends.
type Delays struct {
	book  *record.Book
	watch record.Watcher
	// retry is the first pause after a refusal, failed that after a subjob that its node could not start.
	retry, failed time.Duration
	// awaits are jobs that wait for a slice on which a program ends for them.
	awaits []awaited
}

type awaited struct {
	job   *record.Job
	slice job.SliceID
}

// mostAwaited is how long a job waits for a slice on which a program ends for it: longer than that takes, unless it does not end.
const mostAwaited = 15 * time.Second

// Await has a job wait until a slice is offered on which a program ends for it. Meanwhile it would have one end on the next slice, and the
// next.
func (d *Delays) Await(now quantity.Instant, j *record.Job, slice job.SliceID) {
	if j.Backoff().Rests() > now.Add(mostAwaited) {
		return
	}
	d.Rest(now, j, mostAwaited)
	j.Backoff().Await(slice)
	d.forget(func(a awaited) bool { return a.job == j })
	d.awaits = append(d.awaits, awaited{j, slice})
}

// Offered ends the wait of jobs for a slice.
func (d *Delays) Offered(now quantity.Instant, slice job.SliceID) {
	d.forget(func(a awaited) bool {
		if a.slice == slice && a.job.Active() && a.job.Backoff().Awaits() == slice && a.job.Backoff().Rests() > now {
			d.Rest(now, a.job, 0)
		}
		return a.slice == slice || !a.job.Active()
	})
}

// forget drops those of who waits that are not to be kept.
func (d *Delays) forget(over func(awaited) bool) { d.awaits = slices.DeleteFunc(d.awaits, over) }

// refused notes that a job got no place that it asked for under a number, the newest one now being that. It avoids the slices it was
// refused on, none if what it was refused for is no longer on offer.
func (d *Delays) refused(now quantity.Instant, j *record.Job, on []job.SliceID, ask, newest uint64, text string) {
	d.book.Changed(j)
	if !j.Active() {
		return
	}
	b := j.MakeBackoff()
	pause := b.Refused(now, ask, newest, d.retry, text)
	for _, id := range on {
		b.Avoid(id, now.Add(pause))
		d.avoids(j)
	}
	d.watch.TurnedDown(now, j, on)
	rest := pause
	if text == backoff.Silent { // it asks of others before it asks again there, where nobody may be any more
		rest /= 2
	}
	if b.Often(now.Add(rest)) {
		d.Rest(now, j, rest)
	}
}

// avoids sets the job's alarm for when it avoids one slice less, and has a rigid job placed again.
func (d *Delays) avoids(j *record.Job) {
	d.book.Agenda.Set(record.Avoiding, j, j.Backoff().Expires())
	d.watch.Moved(j)
	d.book.Changed(j)
}

// Expire ends what a job avoids for as long as it was to.
func (d *Delays) Expire(now quantity.Instant, j *record.Job) {
	j.MakeBackoff().Expire(now)
	d.avoids(j)
}

// LooksAnother: what is offered of a slice is something else than before, so what was refused may be had now.
func (d *Delays) LooksAnother(id job.SliceID) {
	for _, j := range d.book.Agenda.All(record.Avoiding) {
		if j.Backoff().LooksAnother(id) {
			d.avoids(j)
		}
	}
}

// Removed: a slice is there no more, and nobody avoids it any more.
func (d *Delays) Removed(id job.SliceID) {
	d.forget(func(a awaited) bool { return a.slice == id })
	for _, j := range d.book.Agenda.All(record.Avoiding) {
		if j.Backoff().Removed(id) {
			d.avoids(j)
		}
	}
}

// Taken: a node took what was sold of a job, so neither the job nor the slice is to be doubted.
func (d *Delays) Taken(j *record.Job, c *protocol.Claim) {
	j.Backoff().Taken()
	d.watch.Taken(j, c)
}

// Ended takes note of how a subjob ended: whether its node could start it.
func (d *Delays) Ended(now quantity.Instant, j *record.Job, r *job.Result) {
	if r.Outcome != job.NodeFailed || r.Start != 0 {
		j.Backoff().NodeWorks()
		return
	}
	b := j.MakeBackoff()
	if !b.NodeFailed(now, r.Detail, d.failed) {
		return
	}
	if until := b.NodeFailures().Until; b.Rests() < until && j.Active() {
		d.Rest(now, j, until.Sub(now))
	}
}

// Rest pauses a job for so long.
func (d *Delays) Rest(now quantity.Instant, j *record.Job, pause time.Duration) {
	until := now.Add(pause)
	j.MakeBackoff().Rest(until)
	d.book.Agenda.Set(record.Resting, j, until)
	d.watch.Rests(j)
	d.book.Touch(j)
}
