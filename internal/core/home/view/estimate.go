package view

import (
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// estimate fills in when a job is likely to start and finish, as a range: work left at the learned or declared rate, on
// as many slices as it may use, the early end without waiting and the late end with what it waited so far per subjob.
func (l *look) estimate(s *home.Job, j *status.Job) {
	v, now := l.v, l.now
	if j.State.Final() || s.Paused {
		return
	}
	early, late, found := now, now, true
	if len(s.Claims()) == 0 {
		early, found = l.nextStart(s)
		early = max(early, s.Backoff().Rests()) // while the job pauses it takes no slice, free or not
		late = early
	}
	_, reserved := v.planner.Planned(s)
	switch {
	case ahead(now, s) != nil && j.Started == 0:
		early = ahead(now, s).Start
		late, j.StartEarly, j.StartLate = early, early, early
	case len(s.Claims()) > 0:
		j.StartEarly, j.StartLate = j.Started, j.Started
	case !found:
	case reserved || !s.Active() && s.Spec.Kind == job.Rigid && v.planner.Reserves(s): // its place is known, or would be
		j.StartEarly, j.StartLate = early, late
	default:
		low, high := v.expect(now, s)
		early, late = max(early, low), max(early, low, high)
		j.StartEarly, j.StartLate = early, late
	}
	if !found {
		return
	}
	if s.Spec.Kind == job.Rigid {
		if s.Spec.Walltime > 0 {
			end, wall := early, time.Duration(0)
			if len(s.Claims()) > 0 {
				wall = s.Claims()[0].Wall()
				if at := s.ClaimSet().State(s.Claims()[0].Token).Running(); at != 0 {
					end, late = at, at
				}
			} else if p, ok := l.rigidPlace(s); ok {
				wall = s.Spec.WalltimeAt(p.Speed)
			}
			j.FinishEarly, j.FinishLate = max(now, end), max(now, late.Add(wall))
		}
		return
	}
	view := s.View()
	if view.Measures() || s.Spec.Open() {
		return // nobody knows how long a unit takes, or how many there are
	}
	usable, slow, fast := 0, int64(0), int64(0)
	free := job.NextFree(0, s.Spec.Total, s.Progress().Committed())
	for _, c := range v.floor.Classes() {
		if speed, ok := runsOn(s, c, free.From); ok {
			usable += c.Usable()
			if slow == 0 || speed < slow {
				slow = speed
			}
			fast = max(fast, speed)
		}
	}
	if usable == 0 {
		return
	}
	left := s.Spec.Total - s.Progress().Committed().Len()
	at := max(1, min(usable, s.Spec.Parallelism))
	best := view.RunTime(left, fast) / time.Duration(at)
	if s.Learned().Rate > 0 && j.RateP50 > 0 {
		best = time.Duration(quantity.MulDiv(int64(j.RateP50), left*1000, fast)) / time.Duration(at)
	}
	worst := view.RunTime(left, slow)
	if len(s.Claims()) > 1 {
		worst /= time.Duration(len(s.Claims()))
	}
	// What it has waited so far between its subjobs is likely to come again for what is left.
	if done := s.Progress().Committed().Len(); done > 0 {
		waited := max(0, now.Sub(s.Submitted)-view.RunTime(done, fast)/time.Duration(at))
		worst += time.Duration(quantity.MulDiv(int64(waited), left, done))
	} else {
		worst += worst / 2
	}
	j.FinishEarly, j.FinishLate = early.Add(best), max(late, early).Add(max(best, worst))
}

// nextStart is the earliest instant at which a waiting job could start.
func (l *look) nextStart(j *home.Job) (early quantity.Instant, found bool) {
	if j.Spec.Kind == job.Rigid {
		p, ok := l.rigidPlace(j)
		return p.Start, ok
	}
	return l.opening(j)
}

// runsOn says whether the job's next piece is safe on the usable slices of a class, and how fast it is there.
func runsOn(j *home.Job, c *window.Class, from int64) (speed int64, ok bool) {
	speed = c.SpeedOf(j.Spec)
	return speed, speed > 0 && c.Usable() > 0 && j.Safe().Reach(from, c.Capacity[trp.Memory], j.Spec.Total, j.Learned().MemoryScale) > from
}
