// Package shortest asks the job that is over soonest for what it counts, on the slices where it has the greatest advantage: the
// weighted shortest remaining time first, made fit for slices that are not alike (adr 0031). It has the least mean time to
// completion of the policies; long work waits while short work comes.
package shortest

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
)

// Policy is the order.
type Policy struct{}

// Name is "shortest".
func (Policy) Name() string { return "shortest" }

// Compare orders by density, the greatest first, then by age.
func (Policy) Compare(a, b *policy.Candidate) int {
	if c := cmp.Compare(b.Index, a.Index); c != 0 {
		return c
	}
	return policy.ByAge(a, b)
}

// Key is the density and the age.
func (Policy) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{^c.Index, policy.Age(c.Priority, c.Submitted)}
}

// Index is the job's density.
func (Policy) Index(o policy.Outlook) int64 { return o.Density() }

// Motion: the density of a job is its own, on each class of slices.
func (Policy) Motion() policy.Motion { return policy.ByClass }
