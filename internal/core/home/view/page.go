package view

import (
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Page lists the newest jobs that stand before a key, and counts those before the page. What it costs grows with the page, with
// the logarithm of how many jobs there are, and where states are selected with how many jobs have claims.
func (v *View) Page(now quantity.Instant, q status.JobQuery) status.JobPage {
	var page status.JobPage
	found, older := v.newest(now, q)
	if page.Older = older; older > 0 && len(found) > 0 {
		page.Next = found[0].ListKey()
	}
	page.Jobs = make([]status.Job, len(found))
	l := v.look(now)
	for i, j := range found {
		page.Jobs[i] = l.show(j)
	}
	return page
}

// newest are the jobs of a page by the states that are shown: to the ledger a job runs from when it is sold a lease, and people see it wait
// until that begins.
func (v *View) newest(now quantity.Instant, q status.JobQuery) (found []*home.Job, older int) {
	if q.States.Has(job.Running) == q.States.Has(job.Waiting) && q.States.Has(job.Running) == q.States.Has(job.Paused) {
		return v.home.Book().Newest(q)
	}
	var more, less []*home.Job
	for _, j := range v.home.Book().Busy() {
		state := shownState(now, j)
		switch {
		case state == j.Phase(), q.Queue != "" && q.Queue != j.Queue().Name, q.Owner != "" && q.Owner != j.Spec.Owner,
			q.Before != (status.JobKey{}) && j.ListKey().Compare(q.Before) >= 0:
		case q.States.Has(state) && !q.States.Has(j.Phase()):
			more = append(more, j)
		case !q.States.Has(state) && q.States.Has(j.Phase()):
			less = append(less, j)
		}
	}
	wide := q
	if q.Limit > 0 {
		wide.Limit += len(less)
	}
	found, older = v.home.Book().Newest(wide)
	total := len(found) + older + len(more) - len(less)
	found = append(slices.DeleteFunc(found, func(j *home.Job) bool { return slices.Contains(less, j) }), more...)
	slices.SortFunc(found, func(a, b *home.Job) int { return a.ListKey().Compare(b.ListKey()) })
	if q.Limit > 0 {
		found = found[max(0, len(found)-q.Limit):]
	}
	return found, total - len(found)
}
