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

// carve is what the job's atomizer cuts from [start, end) of a slice to be sold now.
func (f *Floor) carve(j *Job, s *Slice, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	if j.Spec().Divisible() {
		v := j.View()
		if p, r := atomizer.Fit(&v, f.Within(j, s, start, end)); r.Why == atomizer.Interested {
			return p, r
		}
	}
	return f.Fit(j, s.class, start, end)
}

// Within is what a job sees of [start, end) of a slice for a piece that is to be sold: its Window, and of a gap that may be over
// sooner, where the job would lose its work, no more than what is likely to last; but never less than its least useful piece, so
// that what is learned of ends says how long pieces are, and never who is eligible.
func (f *Floor) Within(j *Job, s *Slice, start, end quantity.Instant) atomizer.Window {
	w := f.Window(j, s.class, start, end)
	if safe := s.Safe(start); safe < w.End && j.Spec().Divisible() && j.Loses() {
		if safe = max(safe, start.Add(j.least(s.class))); safe < w.End {
			w.End, w.Open = safe, true
		}
	}
	return w
}

// least is the shortest window of a class that a job can use.
func (j *Job) least(c *Class) time.Duration {
	if j.indexed && !bool(j.stale) && c.at < len(j.answers) && j.answers[c.at].need < open {
		return j.answers[c.at].need
	}
	v := j.View()
	return atomizer.LeastWindow(&v, max(1, c.SpeedOf(j.Spec())))
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
