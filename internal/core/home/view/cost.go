package view

import (
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Costs completes a node's list of the subjobs that a reservation would cut: how far they are, and what would be done again. A subjob of
// another zone's job stays as the node reported it.
func (v *View) Costs(cuts []status.Cut) []status.Cut {
	out := make([]status.Cut, 0, len(cuts))
	for _, c := range cuts {
		if j := v.home.Book().Job(c.Job); j != nil {
			c.Kind = j.Spec.Kind
			if st := j.ClaimSet().State(c.Token); st != nil {
				c.Reported = max(0, min(st.Progress(), c.Range.To)-c.Range.From)
				if !c.Withdrawn {
					c.Ran = max(0, c.At.Sub(c.Started))
					c.AtRisk = atRisk(j, j.ClaimSet().Claim(c.Token).Speed, &c)
				}
			} else if j.Spec.Topology != job.SameNode && !c.Withdrawn { // a further member of a gang
				c.Ran = max(0, c.At.Sub(c.Started))
				c.AtRisk = c.Ran
			}
		}
		out = append(out, c)
	}
	return out
}

// atRisk is how much of a subjob's run is done again if it is cut and leaves no checkpoint when it is warned.
func atRisk(j *home.Job, speed int64, c *status.Cut) time.Duration {
	if j.Spec.Kind == job.Rigid {
		return c.Ran
	}
	unit := j.Spec.PerUnit
	if j.Learned().Rate > 0 {
		unit = j.Learned().Rate
	}
	if speed <= 0 {
		return c.Ran
	}
	done := time.Duration(quantity.MulDiv(int64(unit), 1000*c.Reported, speed))
	return max(0, c.Ran-done)
}
