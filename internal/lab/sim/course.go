package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim/skew"
	"sluice.dev/sluice/internal/lab/workload"
)

// Behaviour is how a subjob really goes, as opposed to its plan.
type Behaviour struct {
	// Restore passes before the first unit, PerUnit is the true time of one unit, Checkpoint passes after the last.
	Restore, PerUnit, Checkpoint time.Duration
	// Startup is the part of Restore in which its program starts. Who goes on in a program that is there does not pay it.
	Startup time.Duration
	// Saves is after how many units it leaves a checkpoint on its way, as the spec says what that takes; 0: never.
	Saves int64
	// Peak is the use it reports.
	Peak trp.Vector
	// Fails is how it ends FailAfter its start, unless it is over by then; 0: it does not fail.
	Fails     job.Outcome
	FailAfter time.Duration
	// Linger is how long its processes take to be gone after they were killed.
	Linger time.Duration
	// Yields: a divisible job that can not be done in time stops by itself at the last cut point that, with its checkpoint,
	// fits before its lease's end, and a rigid one is killed at its walltime; what a checkpoint takes is what the spec says.
	// Otherwise both go on until they are killed.
	Yields bool
}

// warm is the same in a program that has started.
func (b Behaviour) warm() Behaviour {
	b.Restore -= b.Startup
	b.FailAfter -= b.Startup
	b.Startup = 0
	return b
}

// Model decides how the subjob of a Start goes. It must be the same each time for one token.
type Model func(start *protocol.Message) Behaviour

// Planned is a machine on which everything goes exactly as planned.
func Planned(m *protocol.Message) Behaviour {
	b := Behaviour{PerUnit: m.Body.(*protocol.Work).Plan.Run}
	if n := m.Body.(*protocol.Work).Range.Len(); n > 1 {
		b.PerUnit = m.Body.(*protocol.Work).Plan.Run / time.Duration(n)
	}
	if m.Body.(*protocol.Work).Spec != nil {
		if m.Body.(*protocol.Work).Range.To < m.Body.(*protocol.Work).Spec.Total {
			b.Checkpoint = m.Body.(*protocol.Work).Spec.Checkpoint // the piece that finishes the job leaves none
		}
		if !m.Body.(*protocol.Work).Plan.Resume.Zero() {
			b.Restore = m.Body.(*protocol.Work).Spec.Restore
		}
	}
	return b
}

// course is when the work of a run is done, and what of it counts whenever it ends. Instants are true ones but for those named otherwise.
type course struct {
	does  Behaviour
	start protocol.Message
	clock *skew.Clock
	rng   job.Range
	begin quantity.Instant
	shown quantity.Instant // begin by its node's clock

	// end is the lease's by its node's clock, promised the latest end that it was sent. cut: it was moved ahead of that.
	end, promised quantity.Instant
	cut           bool
	// stayed: it goes on in a program that was there.
	stayed bool
	// how it ends if nothing else happens, and the unit up to which it is complete then if it yields.
	how   job.Outcome
	yield int64
}

// work is the ordered work.
func (r *course) work() *protocol.Work { return r.start.Body.(*protocol.Work) }

func (r *course) grace() time.Duration {
	if r.work().Spec == nil {
		return 0
	}
	return r.work().Spec.Launch.Grace
}

// reaches is when the units up to one are complete.
func (r *course) reaches(unit int64) quantity.Instant {
	return r.begin.Add(r.does.Restore).Add(time.Duration(quantity.MulDiv(unit-r.rng.From, int64(r.does.PerUnit), 1))).Add(r.saving(unit))
}

// saving is what the checkpoints take that are left on the way to the end of a unit, that which follows it left out.
func (r *course) saving(unit int64) time.Duration {
	if r.does.Saves == 0 || unit <= r.rng.From {
		return 0
	}
	return time.Duration((unit-r.rng.From-1)/r.does.Saves) * r.work().Spec.Checkpoint
}

// cycle is the work between two checkpoints on the way, with one of them.
func (r *course) cycle() time.Duration {
	return time.Duration(quantity.MulDiv(r.does.Saves, int64(r.does.PerUnit), 1)) + r.work().Spec.Checkpoint
}

// saved is the unit up to which such checkpoints are complete at t.
func (r *course) saved(t quantity.Instant) int64 {
	ran := t.Sub(r.begin) - r.does.Restore
	if r.does.Saves == 0 || ran < 0 {
		return r.rng.From
	}
	return r.rng.From + min(int64(ran/r.cycle()), (r.rng.Len()-1)/r.does.Saves)*r.does.Saves
}

// complete is the unit up to which work is complete at t.
func (r *course) complete(t quantity.Instant) int64 {
	ran := t.Sub(r.begin) - r.does.Restore
	switch {
	case ran < 0:
		return r.rng.From
	case r.does.PerUnit <= 0:
		return r.rng.To
	case r.does.Saves > 0:
		cycle := r.cycle()
		return r.rng.From + min(r.rng.Len(), int64(ran/cycle)*r.does.Saves+min(r.does.Saves, int64(ran%cycle/r.does.PerUnit)))
	}
	return r.rng.From + min(r.rng.Len(), int64(ran/r.does.PerUnit))
}

// onGrid is the last cut point of the piece at or before a unit.
func (r *course) onGrid(unit int64) int64 {
	if unit < r.rng.To && r.work().Spec != nil && r.work().Spec.Grid > 1 {
		unit -= unit % r.work().Spec.Grid
	}
	return max(r.rng.From, min(unit, r.rng.To))
}

// last is what the checkpoint after the last unit takes.
func (r *course) last() time.Duration {
	switch spec := r.work().Spec; {
	case !r.does.Yields || spec == nil:
		return r.does.Checkpoint
	case r.rng.To == spec.Total:
		return 0
	default:
		return spec.Checkpoint
	}
}

// plan is when the run ends if nothing else happens, not before now; it notes how.
func (r *course) plan(now quantity.Instant) quantity.Instant {
	at, kill := r.reaches(r.rng.To).Add(r.last()), r.clock.When(r.end)
	r.how = job.Done
	spec := r.work().Spec
	rigid := spec != nil && spec.Kind == job.Rigid
	if r.does.Yields && rigid && kill != quantity.Never {
		kill = min(kill, max(kill.Add(-r.grace()), r.begin.Add(r.work().Plan.Wall)))
	}
	if kill < at {
		at, r.how = kill, job.DeadlineKilled
		if r.cut {
			r.how = job.Stopped
		}
		if r.does.Yields && spec != nil && !rigid {
			at = r.yields(now, kill)
		}
	}
	// What would happen in a unit that the run does not enter does not happen: a phase that begins where the piece ends, while
	// it checkpoints.
	worked := at
	switch r.how {
	case job.Done:
		worked = min(at, r.reaches(r.rng.To))
	case job.Yielded:
		worked = min(at, r.reaches(r.yield))
	default: // it works to the end
	}
	if fails := r.begin.Add(r.does.FailAfter); r.does.Fails != 0 && fails < worked {
		at, r.how, r.yield = fails, r.does.Fails, r.kept(fails)
	}
	return max(now, at)
}

// yields is when a run that can not be done before it is killed stops by itself: at the last cut point that still fits with
// its checkpoint; if the end has come too close for that, at once, with what is complete now; and if nothing will be
// complete, when it is told. It may be killed first.
func (r *course) yields(now, kill quantity.Instant) quantity.Instant {
	checkpoint := r.work().Spec.Checkpoint
	unit := r.onGrid(r.complete(kill.Add(-checkpoint)))
	at := r.reaches(unit)
	if at < now {
		unit = r.onGrid(r.complete(now))
		at = now
	}
	switch {
	case unit == r.rng.From:
		at = max(now, kill.Add(-r.grace()))
	case at.Add(checkpoint) > kill:
		return kill
	default:
		at = at.Add(checkpoint)
	}
	r.how, r.yield = job.Yielded, unit
	return at
}

// outcome is the result of a run that ends at an instant. What counts of one that is cut short: all up to the checkpoint of
// one that yields, whole units of items on the grid, of a chain what checkpoints on its way have saved, nothing of a rigid job.
func (r *course) outcome(how job.Outcome, at quantity.Instant) *job.Result {
	res := &job.Result{Outcome: how, Progress: r.rng.To, Start: r.shown, End: r.clock.Shows(at), Peak: r.does.Peak, Stayed: r.stayed}
	spec := r.work().Spec
	if spec != nil && spec.Resident && at.Sub(r.begin) >= r.does.Startup { // else it never said that it was ready
		res.Startup = r.does.Startup
	}
	chain := spec != nil && spec.Kind == job.Steps
	switch how {
	case job.Done:
		res.Checkpoint = chain
	case job.Yielded:
		res.ExitCode, res.Progress = 85, r.yield
		res.Checkpoint = chain && res.Progress > r.rng.From
	case job.ExitFailed:
		res.ExitCode, res.Detail = 1, "it failed"
		res.Progress = r.kept(at)
		res.Checkpoint = chain && res.Progress > r.rng.From
	default:
		res.ExitCode, res.Signal = -1, 9
		res.Progress = r.kept(at)
		res.Checkpoint = chain && res.Progress > r.rng.From
	}
	if first := r.reaches(r.rng.From + 1); first <= at {
		res.FirstProgress = r.clock.Shows(first)
	}
	return res
}

// kept is the unit up to which work counts if the run is killed.
func (r *course) kept(at quantity.Instant) int64 {
	switch spec := r.work().Spec; {
	case spec == nil || spec.Kind == job.Rigid:
		return r.rng.From
	case spec.Kind == job.Steps:
		return r.saved(at)
	}
	return r.onGrid(r.complete(at))
}

// entered is the unit of the job, not of its spec, before which a run that ends has begun all: none while it restores.
func (r *course) entered(j *workload.Job, at quantity.Instant) int64 {
	from, to := j.Span(r.rng.From, r.rng.To)
	ran := int64(at.Sub(r.begin) - r.does.Restore)
	if ran < 0 {
		return from
	}
	if r.does.Saves > 0 {
		return min(to, r.complete(at)+1)
	}
	// a whole number of units has begun the next
	return min(to, from+quantity.MulDiv(ran+1, j.Units, int64(r.does.PerUnit)*r.work().Spec.Total))
}

// later notes that nothing was done for this long from an instant on.
func (r *course) later(from quantity.Instant, d time.Duration) {
	if from.Sub(r.begin) < r.does.Startup {
		r.does.Startup += d
	}
	r.does.Restore += d
	r.does.FailAfter += d
}
