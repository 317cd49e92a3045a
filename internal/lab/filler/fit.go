package filler

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// wanted says whether the host has said that it takes a slice at the end of the present gap, and when that is.
func (o *Options) wanted(s *slice, now quantity.Instant) (quantity.Instant, bool) {
	if s.at == len(s.stays) {
		return 0, false
	}
	from := s.stays[s.at].From
	return from, from.Add(-o.Notice) <= now
}

// fits says whether a job may start where the gap is known to end at end.
func (o *Options) fits(f *filling, s *slice, now, end quantity.Instant) bool {
	if at, wanted := o.wanted(s, now); wanted && o.Discipline.Fits == Anything { // what could not save a thing is not begun
		if o.Discipline.Workers { // a worker is not told that it goes, and none is sent to a slice that is going
			return s.worker
		}
		return o.Discipline.Notices && at.Sub(now) >= f.before()+o.least(f, s)+f.job.Checkpoint
	}
	if end == quantity.Never {
		return true
	}
	left := end.Sub(now)
	switch o.Discipline.Fits {
	case Whole:
		return o.planTime(f, s) <= left
	case Part:
		if o.Discipline.Minimum {
			if plan := o.planTime(f, s); plan <= o.Least {
				return plan <= left
			}
			return o.Least <= left && f.before()+o.least(f, s)+f.job.Checkpoint <= o.Least
		}
		return o.planTime(f, s) <= left || left >= f.before()+o.Least+f.job.Checkpoint
	default:
		return true
	}
}

// least is the time to the first cut point of what is left of a job on a slice.
func (o *Options) least(f *filling, s *slice) time.Duration {
	units := min(f.job.Grid-f.kept%f.job.Grid, f.job.Units-f.kept)
	return time.Duration(quantity.MulDiv(quantity.MulDiv(int64(f.job.Work), units, f.job.Units), 1000, max(1, o.speed(f, s))))
}

// planTime is how long the rest of a job takes on a slice, as its owner declares.
func (o *Options) planTime(f *filling, s *slice) time.Duration {
	left := quantity.MulDiv(int64(f.job.Declared), f.job.Units-f.kept, f.job.Units)
	return f.before() + time.Duration(quantity.MulDiv(left, 1000, max(1, o.speed(f, s))))
}

// speed is how fast a job runs on a slice, in parts per thousand.
func (o *Options) speed(f *filling, s *slice) int64 {
	spec := job.Spec{Speeds: f.job.Speeds}
	return spec.SpeedOn(o.Classes[s.class].Name, o.Classes[s.class].Weight)
}
