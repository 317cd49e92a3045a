package view

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Page lists the newest jobs that stand before a key, and counts those before the page. What it costs grows with the page, and
// with the logarithm of how many jobs there are.
func (v *View) Page(now quantity.Instant, q status.JobQuery) status.JobPage {
	var page status.JobPage
	found, older := v.home.Newest(q)
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
