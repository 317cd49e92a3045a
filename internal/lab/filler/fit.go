package filler

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// fill starts the first job that may run on a slice, in the discipline's order; it says whether there was one.
func (p *play) fill(s *slice) bool {
	if p.Discipline.Fits == Nothing {
		return false
	}
	best, end := -1, s.known()
	for i, f := range p.waiting {
		if f.usable>>s.class&1 == 0 || !p.fits(f, s, end) {
			continue
		}
		if best < 0 || p.planTime(f, s) < p.planTime(p.waiting[best], s) {
			best = i
		}
		if !p.Discipline.Shortest {
			break
		}
	}
	if best < 0 {
		return false
	}
	f := p.waiting[best]
	p.waiting = slices.Delete(p.waiting, best, best+1)
	p.start(f, s, end)
	return true
}

// wanted says whether the host has said that it takes a slice at the end of the present gap, and when that is.
func (p *play) wanted(s *slice) (quantity.Instant, bool) {
	if s.at == len(s.stays) {
		return 0, false
	}
	from := s.stays[s.at].From
	return from, from.Add(-p.Notice) <= p.now
}

// fits says whether a job may start where the gap is known to end at end.
func (p *play) fits(f *filling, s *slice, end quantity.Instant) bool {
	if at, wanted := p.wanted(s); wanted && p.Discipline.Fits == Anything { // what could not save a thing is not begun
		return p.Discipline.Notices && at.Sub(p.now) >= p.before(f)+p.least(f, s)+f.Checkpoint
	}
	if end == quantity.Never {
		return true
	}
	left := end.Sub(p.now)
	switch p.Discipline.Fits {
	case Whole:
		return p.planTime(f, s) <= left
	case Part:
		return p.planTime(f, s) <= left || left >= p.before(f)+p.Least+f.Checkpoint
	default:
		return true
	}
}

// least is the time to the first cut point of what is left of a job on a slice.
func (p *play) least(f *filling, s *slice) time.Duration {
	units := min(f.Grid-f.kept%f.Grid, f.Units-f.kept)
	return time.Duration(quantity.MulDiv(quantity.MulDiv(int64(f.Work), units, f.Units), 1000, max(1, p.speed(f, s))))
}

// before is what passes before a run's first unit.
func (p *play) before(f *filling) time.Duration {
	if f.kept > 0 {
		return f.Startup + f.Restore
	}
	return f.Startup
}

// planTime is how long the rest of a job takes on a slice, as its owner declares.
func (p *play) planTime(f *filling, s *slice) time.Duration {
	left := quantity.MulDiv(int64(f.Declared), f.Units-f.kept, f.Units)
	return p.before(f) + time.Duration(quantity.MulDiv(left, 1000, max(1, p.speed(f, s))))
}

// speed is how fast a job runs on a slice, in parts per thousand.
func (p *play) speed(f *filling, s *slice) int64 {
	spec := job.Spec{Speeds: f.Speeds}
	return spec.SpeedOn(p.Classes[s.class].Name, p.Classes[s.class].Weight)
}
