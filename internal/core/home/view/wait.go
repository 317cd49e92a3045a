package view

import (
	"time"

	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Guess is the plain estimate of a wait that begins now: none if a window is open for every waiting job.
func (v *View) Guess(now quantity.Instant, j *home.Job) time.Duration {
	waiting := int64(v.home.Book().Waiting())
	if !j.Active() {
		waiting++ // it is not among them: a dry run
	}
	if waiting <= int64(v.floor.Open()) {
		return 0
	}
	if interval, known := v.waits.Interval(now); known {
		return max(foresight.Least, time.Duration(quantity.MulDiv(int64(interval), waiting, 1)))
	}
	// Nothing is known of the rate: assume that all waiting jobs are as long as this one, and take turns on the slices.
	places, speed := int64(0), int64(0)
	for _, c := range v.floor.Classes() {
		if on := c.SpeedOf(j.Spec); on > 0 && c.Usable() > 0 {
			places, speed = places+int64(c.Usable()), max(speed, on)
		}
	}
	if places == 0 {
		return foresight.Least
	}
	own := j.Spec.WalltimeAt(speed)
	if j.Spec.Divisible() {
		view := j.View()
		own = view.RunTime(view.Committed.Len()+view.Ahead(), speed)
	}
	return max(foresight.Least, time.Duration(quantity.MulDiv(int64(own), waiting, places)))
}

// expect is when a waiting job is likely to start.
func (v *View) expect(now quantity.Instant, j *home.Job) (early, late quantity.Instant) {
	t := v.waits.Told(j)
	if !t.Stands() {
		t = foresight.Plain(now, v.Guess(now, j))
	}
	return v.waits.Range(now, t)
}

// Foresight is how predicted ranges of waits have come out since the zone came up.
func (v *View) Foresight() status.Foresight { return v.waits.Record() }
