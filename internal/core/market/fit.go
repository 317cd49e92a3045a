package market

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Fit asks the job's atomizer what it would do with [start, end) of a slice of a class, with the queue's bound on windows
// applied.
func (f *Floor) Fit(j *Job, c *Class, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	if Wide(j.Spec()) {
		return atomizer.Piece{}, placed(j.Spec())
	}
	v, offered := j.View(), f.Window(j, c, start, end)
	p, r := atomizer.Fit(&v, offered)
	if r.Why == atomizer.TooShort && j.Spec().Divisible() && offered.End.Sub(offered.Start) >= f.Longest(j) {
		v.Hopeful = true
		return atomizer.Fit(&v, offered)
	}
	return p, r
}

// Wide says whether a job needs several slices at once: no window holds it, and it is placed by whoever embeds the floor.
func Wide(spec *job.Spec) bool { return spec.Kind == job.Rigid && spec.Slices > 1 }

// placed is why a rigid job of several slices answers no window: it is placed.
func placed(spec *job.Spec) atomizer.Refusal {
	return atomizer.Refusal{Why: atomizer.TooShort, Need: spec.Walltime}
}

// Longest is the longest window a job can be offered.
func (f *Floor) Longest(j *Job) time.Duration {
	if _, most := j.Queue(); most > 0 {
		return min(f.cfg.Horizon, most)
	}
	return f.cfg.Horizon
}

// Window is what a job sees of [start, end): bounded by its queue's maxWindow and, where no end is known, the horizon.
func (f *Floor) Window(j *Job, c *Class, start, end quantity.Instant) atomizer.Window {
	known := end
	rigid := j.Spec().Kind == job.Rigid
	if end == quantity.Never && !rigid {
		end = start.Add(f.cfg.Horizon)
	}
	if _, most := j.Queue(); most > 0 && !rigid {
		end = min(end, start.Add(most))
	}
	return atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), Start: start, End: end, Open: end < known}
}
