package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// guess is the plain estimate of a wait that begins now: none where a window is open for everybody who waits.
func (z *Zone) guess(now quantity.Instant, j *home.Job) time.Duration {
	waiting := int64(z.home.Waiting())
	if !j.Active() {
		waiting++ // it is not among them: a dry run
	}
	if waiting <= int64(z.floor.Open()) {
		return 0
	}
	if interval, known := z.foresight.Interval(now); known {
		return max(foresight.Least, time.Duration(quantity.MulDiv(int64(interval), waiting, 1)))
	}
	// Nothing is known of the rate: it is as if all that wait were as long as this job, and the slices went round.
	places, speed := int64(0), int64(0)
	for _, c := range z.floor.Classes() {
		if on := c.SpeedOf(j.Spec); on > 0 && c.Usable() > 0 {
			places, speed = places+int64(c.Usable()), max(speed, on)
		}
	}
	if places == 0 {
		return foresight.Least
	}
	own := j.Spec.WalltimeAt(speed)
	if j.Spec.Divisible() {
		v := j.View()
		own = v.RunTime(j.Spec.Total, speed)
	}
	return max(foresight.Least, time.Duration(quantity.MulDiv(int64(own), waiting, places)))
}

// foresee tells a job that has just come how long it is likely to wait.
func (z *Zone) foresee(now quantity.Instant, j *home.Job) {
	if !j.Active() || j.Started() != 0 || len(j.Claims()) > 0 || j.Held {
		return
	}
	z.foresight.Tell(&entryOf(j).told, now, z.guess(now, j))
}

// expect is when a waiting job is likely to start.
func (z *Zone) expect(now quantity.Instant, j *home.Job) (early, late quantity.Instant) {
	t := entryOf(j).told
	if !t.Stands() {
		t = foresight.Plain(now, z.guess(now, j))
	}
	return z.foresight.Range(now, t)
}

// Foresight is how the ranges that jobs were told have come out since the zone came up.
func (z *Zone) Foresight() status.Foresight { return z.foresight.Record() }
