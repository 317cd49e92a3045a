package pages

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/status"
)

// hidden turns damage into a warning: it hides one job and no other. It returns any other error.
func hidden(page *status.JobPage, err error) error {
	if errkind.Of(err) != errkind.Corrupt {
		return err
	}
	page.Warnings = append(page.Warnings, err.Error())
	return nil
}

// maxWarnings is how many jobs that can't be shown one page names.
const maxWarnings = 20

// fewer leaves out the warnings beyond that, and adds one that says so.
func fewer(warnings []string) []string {
	if n := len(warnings) - maxWarnings; n > 0 {
		return append(warnings[:maxWarnings:maxWarnings], fmt.Sprintf("and %d more jobs are damaged", n))
	}
	return warnings
}

// merged merges two pages. Where one of them is cut off, the other counts only up to there: jobs beyond may be missing.
func merged(q status.JobQuery, a, b status.JobPage) (out status.JobPage) {
	end := status.JobKey{}
	for _, p := range []status.JobPage{a, b} {
		if p.Older > 0 && p.Next.Compare(end) > 0 {
			end = p.Next
		}
	}
	out.Warnings = fewer(append(a.Warnings, b.Warnings...))
	out.Jobs = append(a.Jobs, b.Jobs...)
	slices.SortStableFunc(out.Jobs, func(x, y status.Job) int { return x.Key().Compare(y.Key()) })
	out.Jobs = slices.CompactFunc(out.Jobs, func(x, y status.Job) bool { return x.Key() == y.Key() })
	from, _ := slices.BinarySearchFunc(out.Jobs, end, func(j status.Job, k status.JobKey) int { return j.Key().Compare(k) })
	if q.Limit > 0 {
		from = max(from, len(out.Jobs)-q.Limit)
	}
	out.Older, out.Jobs = a.Older+b.Older+from, out.Jobs[from:]
	switch {
	case out.Older == 0:
	case from > 0 && len(out.Jobs) > 0 && out.Jobs[0].Key().Compare(end) > 0:
		out.Next = out.Jobs[0].Key()
	default:
		out.Next = end
	}
	return out
}
