package zone

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// ailed counts the subjobs in a row that nodes could not run for a trouble of their own (job.NodeFailed). It never ends a job:
// it delays the next try, so that one whose work directory fits on no disk takes nothing from others. Soft: a crash forgets it
// and tries once more.
type ailed struct {
	times int
	until quantity.Instant
	text  string
}

// ail takes note of how a subjob ended: any but NodeFailed ends the count.
func (z *Zone) ail(now quantity.Instant, j *Job, r *job.Result) {
	if r.Outcome != job.NodeFailed {
		if j.trouble != nil {
			j.trouble.ailed = ailed{}
		}
		return
	}
	a := &j.troubled().ailed
	if now < a.until { // one that was started beside it
		return
	}
	a.times++
	a.text = r.Detail
	a.until = now.Add(min(mostPause, z.cfg.Backoff<<min(a.times-1, 10)))
	if j.met().notBefore < a.until && j.alive > 0 {
		z.rest(now, j, a.until.Sub(now))
	}
}

// unusable says why no slice is usable, in the words of the first that says; empty if none does.
func (z *Zone) unusable() string {
	for sl := range z.offeredSlices() {
		if sl.view.Why != "" {
			return ": " + sl.view.Why
		}
	}
	return ""
}
