package host

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// airlocks are what the nodes make of the memory of this machine, by their numbers.
func (h *Host) airlocks(now quantity.Instant) []status.Airlock {
	all := make([]status.Airlock, len(h.actors.Nodes))
	for i := range all {
		all[i] = h.actors.Nodes[i].Airlock(now)
		all[i].Guard = h.opts.Guard
	}
	return all
}

// endured is what was done to a life of a job on all nodes, in order.
func (h *Host) endured(id job.ID, g job.Generation) (all []status.AirlockStep) {
	for i := range h.actors.Nodes {
		all = append(all, h.actors.Nodes[i].Endured(id, g)...)
	}
	if len(h.actors.Nodes) > 1 {
		slices.SortStableFunc(all, func(a, b status.AirlockStep) int { return cmp.Compare(a.At, b.At) })
	}
	return all
}

// strain is the memory of this machine, as the first of its nodes has heard of it, with what all of them have done.
func (h *Host) strain(now quantity.Instant) (sum status.Strain) {
	for i := range h.actors.Nodes {
		s := h.actors.Nodes[i].Strain(now)
		if i == 0 {
			sum = s
			continue
		}
		sum.Parked, sum.Standing = sum.Parked+s.Parked, sum.Standing+s.Standing
		sum.Suspended, sum.Recovered, sum.Readdressed = sum.Suspended+s.Suspended, sum.Recovered+s.Recovered, sum.Readdressed+s.Readdressed
		sum.Reclaimed, sum.Killed, sum.Decisions = sum.Reclaimed+s.Reclaimed, sum.Killed+s.Killed, sum.Decisions+s.Decisions
		sum.Stood, sum.OverLine = sum.Stood+s.Stood, max(sum.OverLine, s.OverLine)
	}
	return sum
}
