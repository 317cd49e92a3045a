// Package ending is how one job ends: its planned verdict, since when its subjobs are told to stop for that, and its final verdict.
package ending

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// MostCancelling is how long after the cancellation claims that have not ended are given up. The other 10 s of the minute are for
	// messages that are lost and repeated, and for hearing nodes first after a pause of the daemon.
	MostCancelling = 50 * time.Second
	// keptGrace is what a subjob of a cancelled job keeps of its grace. The owner wants it gone: a longer grace is for leases that end.
	keptGrace = 30 * time.Second
	// mostStopping bounds how long a home waits, beyond the grace, for a subjob of an ending job that was told to stop, if its lease is not
	// over before. For a cancelled job it is less.
	mostStopping = 10 * time.Minute
)

// Ending is how one job ends. Invariant: its states follow each other as open, stopping, final; a cancellation keeps the time at which
// it was first asked for. Its reading methods may be called on nil, of a job that nobody and nothing has ended.
type Ending struct {
	// Durable, as protocol.Record has them. moving is why the job is given up to another zone; empty while it is not.
	verdict job.Verdict
	ended   quantity.Instant
	moving  string

	// planned is the verdict that the job gets once its claims are settled; its State is Waiting (zero) while none. stopped is since
	// when its subjobs have been told to stop for that, cancelled since when its owner has wanted it, by the gate's clock; 0: nobody has.
	planned            job.Verdict
	stopped, cancelled quantity.Instant
}

// Restore makes it the one of a record.
func (e *Ending) Restore(r *protocol.Record) { *e = Ending{verdict: r.Verdict, ended: r.Ended} }

// Verdict is how the job ended; its State is Waiting (zero) while there is none.
func (e *Ending) Verdict() job.Verdict {
	if e == nil {
		return job.Verdict{}
	}
	return e.verdict
}

// Final says whether it has ended.
func (e *Ending) Final() bool { return e != nil && e.verdict.State.Final() }

// Ended is when it got its verdict.
func (e *Ending) Ended() quantity.Instant {
	if e == nil {
		return 0
	}
	return e.ended
}

// Planned is the verdict that it gets once its claims are settled; its State is Waiting while there is none.
func (e *Ending) Planned() job.Verdict {
	if e == nil {
		return job.Verdict{}
	}
	return e.planned
}

// Stopping says whether it is to end once its claims are settled.
func (e *Ending) Stopping() bool { return e.Planned().State != job.Waiting }

// Leaving is why the job is given up to another zone; empty while it is not.
func (e *Ending) Leaving() string {
	if e == nil {
		return ""
	}
	return e.moving
}

// Cancelled says whether its owner has wanted it to end.
func (e *Ending) Cancelled() bool { return e != nil && e.cancelled != 0 }

// Stopped is how long ago its subjobs were first told to stop.
func (e *Ending) Stopped(now quantity.Instant) time.Duration {
	if e == nil {
		return now.Sub(0)
	}
	return now.Sub(e.stopped)
}

// OverBy is when a job that is cancelled is over at the latest; Never where nobody has cancelled it.
func (e *Ending) OverBy() quantity.Instant {
	if e.Cancelled() && !e.Final() {
		return e.cancelled.Add(MostCancelling)
	}
	return quantity.Never
}

// Bound is when a subjob is over at the latest: at the end of its lease, or earlier where its job is to end. Its node was told to stop it
// then; the time beyond its grace is for a node that does not get that at once.
func (e *Ending) Bound(end quantity.Instant, grace time.Duration) quantity.Instant {
	if e.Stopping() {
		end = min(end, e.stopped.Add(grace+mostStopping))
	}
	return end
}

// Hurried says whether a subjob of a cancelled job is to be stopped without further grace: it has had keptGrace.
func (e *Ending) Hurried(now quantity.Instant, grace time.Duration) bool {
	return e.Cancelled() && grace > keptGrace && now >= e.cancelled.Add(keptGrace)
}

// Cancel notes that the job's owner has wanted it to end since then, 0 if that is not known. It is false if that was known before.
func (e *Ending) Cancel(now, since quantity.Instant) bool {
	if e.cancelled != 0 {
		return false
	}
	if since == 0 || since > now {
		since = now
	}
	e.cancelled = since
	return true
}

// Plan makes the job end with a verdict once its claims are settled.
func (e *Ending) Plan(now quantity.Instant, v job.Verdict) {
	if !e.Stopping() {
		e.stopped = now
	}
	e.planned = v
}

// Close gives the job its verdict.
func (e *Ending) Close(v job.Verdict, at quantity.Instant) { e.verdict, e.ended, e.moving = v, at, "" }

// Leave gives the job up to another zone.
func (e *Ending) Leave(why string) { e.moving = why }
