package filler

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// stint is one run of a job. Units done in it are counted from where it begins.
type stint struct {
	job    *workload.Job
	begin  quantity.Instant
	before time.Duration // passes before its first unit
	// perUnit is the true time of a unit, every how many lie between two checkpoints on the way; 0 for none.
	perUnit time.Duration
	every   int64
	from    int64 // unit of the job that it begins at
	reach   int64 // unit before which it passes its slice's memory; all units if it does not
	peak    quantity.Amount
	attempt int64

	// stop is when it has to be gone, end when it ends and how, keeps the unit up to which work counts then.
	stop, end quantity.Instant
	how       job.Outcome
	keeps     int64
}

// checkpoints on the way to the end of unit n, that which follows it left out.
func (r *stint) checkpoints(n int64) int64 {
	if r.every == 0 || n == 0 {
		return 0
	}
	return (n - 1) / r.every
}

// reaches is when n units are done.
func (r *stint) reaches(n int64) quantity.Instant {
	return r.begin.Add(r.before + time.Duration(n)*r.perUnit + time.Duration(r.checkpoints(n))*r.job.Checkpoint)
}

// complete is how many units are done at an instant.
func (r *stint) complete(t quantity.Instant) int64 {
	ran, total := t.Sub(r.begin)-r.before, r.job.Units-r.from
	if ran < 0 {
		return 0
	}
	if r.every == 0 {
		return min(total, int64(ran/r.perUnit))
	}
	cycle := time.Duration(r.every)*r.perUnit + r.job.Checkpoint
	return min(total, int64(ran/cycle)*r.every+min(r.every, int64(ran%cycle/r.perUnit)))
}

// onGrid is the last cut point at or before n units.
func (r *stint) onGrid(n int64) int64 {
	unit := r.from + n
	if unit < r.job.Units {
		unit -= unit % r.job.Grid
	}
	return max(0, unit-r.from)
}

// durable is how many units are saved at an instant without another checkpoint: items that are done, where they are not run again;
// of steps those before the last checkpoint on the way.
func (r *stint) durable(t quantity.Instant, resumes bool) int64 {
	if r.job.Kind == job.Items && resumes {
		return r.onGrid(r.complete(t))
	}
	ran := t.Sub(r.begin) - r.before
	if r.every == 0 || ran < 0 {
		return 0
	}
	cycle := time.Duration(r.every)*r.perUnit + r.job.Checkpoint
	return min(int64(ran/cycle), (r.job.Units-r.from-1)/r.every) * r.every
}

// plan is the course that the run takes if nobody wants its slice.
func (r *stint) plan(resumes bool) {
	r.how, r.keeps, r.end = job.Done, r.job.Units, r.reaches(r.job.Units-r.from)
	if r.reach < r.job.Units {
		n := r.reach - r.from
		r.how, r.end = job.MemoryKilled, r.reaches(n)
		if r.every > 0 && n > 0 && n%r.every == 0 {
			r.end = r.end.Add(r.job.Checkpoint)
		}
		r.keeps = r.from + r.durable(r.end, resumes)
	}
}

// wanted makes the run end by stop, as is known from now on.
func (r *stint) wanted(now, stop quantity.Instant, d Discipline) {
	if r.stop = min(r.stop, stop); r.end <= r.stop {
		return // it is gone by then anyway, perhaps with the checkpoint that it is about to leave
	}
	if !d.Notices {
		r.kill(r.stop, false)
		return
	}
	save := r.job.Checkpoint
	n := r.onGrid(r.complete(r.stop.Add(-save)))
	at := r.reaches(n)
	if at < now { // what is done now is all that can be saved
		n, at = r.onGrid(r.complete(now)), now
	}
	switch {
	case n == 0, r.job.Kind == job.Steps && n <= r.durable(now, true):
		r.kill(now, true) // there is nothing to save, and nothing more to be gained
	case at.Add(save) > r.stop:
		r.kill(r.stop, true)
	default:
		r.how, r.end, r.keeps = job.Yielded, at.Add(save), r.from+n
	}
}

// kill ends the run at an instant with what is saved by then.
func (r *stint) kill(at quantity.Instant, resumes bool) {
	r.how, r.end, r.keeps = job.Stopped, at, r.from+r.durable(at, resumes)
}

// overhead is what the run spent on beginning and on checkpoints that count.
func (r *stint) overhead() time.Duration {
	n := r.keeps - r.from
	taken := r.checkpoints(n)
	if n > 0 && r.how != job.Done { // the last one counts
		taken++
	}
	return r.before + time.Duration(taken)*r.job.Checkpoint
}
