package home

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// ailed counts the subjobs in a row that nodes could not start for a trouble of their own (job.NodeFailed without a start). It never
// ends a job, of which nothing has run: it delays the next try, so that one whose work directory fits on no disk takes nothing from
// others. Soft: a crash forgets it and tries once more. A subjob whose node fails while it runs counts as ended from outside (learn).
type ailed struct {
	times int
	until quantity.Instant
	text  string
}

// ail takes note of how a subjob ended. The count is reset by any that began, and by any outcome but NodeFailed.
func (h *Ledger) ail(now quantity.Instant, j *Job, r *job.Result) {
	if r.Outcome != job.NodeFailed || r.Start != 0 {
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
