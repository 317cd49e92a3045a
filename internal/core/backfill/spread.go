package backfill

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// A gang with a topology may span several nodes: of one rack, one block, or the zone; over several zones by their loans (guest.go). It is
// placed as close together as possible: on one node if there is a place on one, however late; else in the racks, and so on up to the level
// that it allows. Among places of one level the planner's order counts, and on a tie the fewest nodes.

// Spread says whether slices are of several nodes.
func Spread(on []*Slice) bool {
	return slices.ContainsFunc(on, func(s *Slice) bool { return s.Node() != on[0].Node() })
}

// spreads reports whether a job may span several nodes.
func (j *Job) spreads() bool { return j.Spec().Topology > job.SameNode && j.width() > 1 }

// smallest is the slice of a place with the least capacity, the first of these.
func (p *Placement) smallest() *Slice {
	return slices.MinFunc(p.Slices, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
}
