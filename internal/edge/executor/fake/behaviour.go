package fake

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Behaviour is what a subjob really does, as opposed to what was planned for it. The zero value finishes at once.
type Behaviour struct {
	// Restore passes before the first unit; PerUnit is the real run time of one unit on its slice; Checkpoint is what
	// leaving a checkpoint takes, at the end and when it yields. A negative Restore is a head start: units that are
	// complete from the beginning.
	Restore, PerUnit, Checkpoint time.Duration
	// Every is how many units a steps subjob works between checkpoints it leaves on the way; 0 for none on the way.
	Every int64
	// Stubborn subjobs ignore SIGTERM and run until they are done or killed.
	Stubborn bool
	// FailAfter is the time from its start at which it ends with Fails, if it has not ended by then; 0 for never. Code is
	// the exit code and Detail the text it fails with.
	FailAfter time.Duration
	Fails     job.Outcome
	Code      int
	Detail    string
	// Peak is the use its result reports, whenever it ends.
	Peak trp.Vector
	// Report is the time between reports of progress; 0 for none.
	Report time.Duration
}

// Model says how the subjob of a Start message behaves. It is called for every Start, a
// repeated one too, and must say the same each time.
type Model func(start protocol.Message) Behaviour

// Planned is the model of a subjob that does exactly what its plan says: the planned run time spread over its units,
// with the spec's restore and checkpoint costs around it.
func Planned(m protocol.Message) Behaviour {
	b := Behaviour{PerUnit: m.Body.(*protocol.Work).Plan.Run}
	if n := m.Body.(*protocol.Work).Range.Len(); n > 1 {
		b.PerUnit = m.Body.(*protocol.Work).Plan.Run / time.Duration(n)
	}
	if m.Body.(*protocol.Work).Spec != nil {
		b.Checkpoint = m.Body.(*protocol.Work).Spec.Checkpoint
		if !m.Body.(*protocol.Work).Plan.Resume.Zero() {
			b.Restore = m.Body.(*protocol.Work).Spec.Restore
		}
	}
	return b
}

// course is one subjob's life as far as it is known now: what a Deadline or Stop can still change.
type course struct {
	does  Behaviour
	spec  *job.Spec
	rng   job.Range
	began quantity.Instant
	// end is the lease's end. cut: it was moved ahead of the promised one.
	end quantity.Instant
	cut bool
	// stop is when it was told to end, Never if it was not.
	stop quantity.Instant
}

// worked is the unit complete at t.
func (c *course) worked(t quantity.Instant) int64 {
	ran := t.Sub(c.began) - c.does.Restore
	if ran < 0 {
		return c.rng.From
	}
	if c.does.PerUnit <= 0 {
		return c.rng.To
	}
	return c.onGrid(c.rng.From + min(int64(ran/c.does.PerUnit), c.rng.Len()))
}

// onGrid is the last cut point at or before p.
func (c *course) onGrid(p int64) int64 {
	if p >= c.rng.To {
		return c.rng.To
	}
	if c.spec != nil && c.spec.Grid > 1 {
		p -= p % c.spec.Grid
	}
	return max(p, c.rng.From)
}

// safe is what counts at t if the subjob is killed then: every unit of items, the last checkpoint of steps and of what
// else goes on from one, nothing of a rigid job.
func (c *course) safe(t quantity.Instant) (progress int64, checkpoint bool) {
	p := c.worked(t)
	switch {
	case c.kind() == job.Items:
		return p, false
	case c.resumes() && c.does.Every > 0:
		p = c.onGrid(p - (p-c.rng.From)%c.does.Every)
		return p, p > c.rng.From
	}
	return c.rng.From, false
}

func (c *course) kind() job.Kind {
	if c.spec == nil {
		return job.Items
	}
	return c.spec.Kind
}

func (c *course) resumes() bool { return c.spec != nil && c.spec.Resumes() }

func (c *course) grace() time.Duration {
	if c.spec == nil {
		return 0
	}
	return c.spec.Launch.Grace
}

// ending is when and how the subjob ends if nothing else happens.
func (c *course) ending() (quantity.Instant, job.Result) {
	work := time.Duration(0)
	if n := c.rng.Len(); n > 0 && c.does.PerUnit > 0 {
		work = time.Duration(quantity.MulDiv(n, int64(c.does.PerUnit), 1))
	}
	at := c.began.Add(c.does.Restore).Add(work).Add(c.does.Checkpoint)
	res := job.Result{Outcome: job.Done, Progress: c.rng.To, Checkpoint: c.resumes()}

	term, kill := c.end.Add(-c.grace()), c.end
	stopped := c.cut
	if c.stop != quantity.Never && c.stop <= term {
		term, kill, stopped = c.stop, min(c.end, c.stop.Add(c.grace())), true
	}
	term = max(term, c.began)
	kill = max(kill, c.began)
	if !c.does.Stubborn && c.spec != nil && (c.spec.Divisible() || c.spec.Resumes()) && term.Add(c.does.Checkpoint) <= kill && term < at {
		p := c.worked(term)
		at = term.Add(c.does.Checkpoint)
		res = job.Result{Outcome: job.Yielded, ExitCode: 85, Progress: p, Checkpoint: c.resumes() && p > c.rng.From}
	}
	if kill < at {
		at = kill
		res = job.Result{Outcome: job.DeadlineKilled, ExitCode: -1, Signal: 9}
		if stopped {
			res.Outcome = job.Stopped
		}
		res.Progress, res.Checkpoint = c.safe(kill)
	}
	if fail := c.began.Add(c.does.FailAfter); c.does.FailAfter > 0 && fail < at {
		at = fail
		res = job.Result{Outcome: c.does.Fails, ExitCode: c.does.Code, Detail: c.does.Detail}
		res.Progress, res.Checkpoint = c.safe(fail)
	}
	return at, c.finish(at, res)
}

// lost is the result of a subjob whose supervisor is gone at t.
func (c *course) lost(t quantity.Instant, how job.Outcome, why string) job.Result {
	res := job.Result{Outcome: how, ExitCode: -1, Detail: why}
	res.Progress, res.Checkpoint = c.safe(t)
	return c.finish(t, res)
}

func (c *course) finish(at quantity.Instant, res job.Result) job.Result {
	res.Start, res.End, res.Peak = c.began, at, c.does.Peak
	if first := c.began.Add(c.does.Restore).Add(c.does.PerUnit); first <= at {
		res.FirstProgress = max(first, c.began)
	}
	return res
}
