package home

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
func (h *Ledger) ail(now quantity.Instant, j *Job, r *job.Result) {
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
	a.until = now.Add(min(mostPause, h.cfg.Backoff<<min(a.times-1, 10)))
	if j.met().notBefore < a.until && j.alive > 0 {
		h.rest(now, j, a.until.Sub(now))
	}
}
