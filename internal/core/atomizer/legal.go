package atomizer

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Cut returns what is wrong with a range as a piece of the job that works for run, empty if nothing is, whoever proposed it. It does not
// check what is free, safe or in time.
func (v *View) Cut(r job.Range, run time.Duration) string {
	s := v.Spec
	free := job.NextFree(r.From, s.Total, v.Committed, v.Claimed)
	if s.Kind == job.Rigid {
		if first := job.NextFree(0, s.Total, v.Committed, v.Claimed); r.From != first.From || r.To != s.Total {
			return "the job is rigid: all that is left of it runs at once"
		}
		return ""
	}
	if s.Kind == job.Steps {
		if first := job.NextFree(0, s.Total, v.Committed, v.Claimed); r.From != first.From {
			return fmt.Sprintf("the chain goes on at %d, and it begins at %d", first.From, r.From)
		}
	}
	limit, end := v.suspectLimit(job.Range{From: r.From, To: free.To})
	suspect := v.suspected(r.From)
	_, bound := slices.BinarySearch(v.Safe().Bounds, r.From)
	starts := r.From%s.Grid == 0 || bound || v.Committed.Ends(r.From) || v.Claimed.Ends(r.From) ||
		slices.ContainsFunc(v.Learned.Suspects, func(s protocol.Suspect) bool { return s.Range.To == r.From })
	ends := r.To%s.Grid == 0 || r.To == end
	switch {
	case !suspect && !(starts && ends):
		return fmt.Sprintf("[%d,%d) is not on the grid of %d", r.From, r.To, s.Grid)
	case r.Len() > limit || r.To > end:
		return fmt.Sprintf("a unit near %d fails, and to find which at most %d are run at once up to %d", r.From, limit, end)
	case run < s.TauMin && r.To != end && !suspect && !v.Measures():
		return fmt.Sprintf("it works for %v, the least useful run is %v", run, s.TauMin)
	}
	return ""
}

// Needs is the least memory at which a range is safe, with what was learned and the option.
func (v *View) Needs(r job.Range) quantity.Amount {
	return v.Safe().LeastOver(r.From, r.To, v.Scale())
}
