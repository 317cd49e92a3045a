// Package shortest asks the job that is over soonest for what it counts, on the slices where it has the greatest advantage: the
// weighted shortest remaining time first, made fit for slices that are not alike (adr 0031). It has the least mean time to
// completion of the policies; long work waits while short work comes.
package shortest

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// Policy is the order.
type Policy struct{}

// Name is "shortest".
func (Policy) Name() string { return "shortest" }

// Compare orders by index, the greatest first, then by age.
func (Policy) Compare(a, b *policy.Candidate) int {
	if c := cmp.Compare(b.Index, a.Index); c != 0 {
		return c
	}
	return policy.ByAge(a, b)
}

// Key is the index and the age.
func (Policy) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{^c.Index, policy.Age(c.Priority, c.Submitted)}
}

// Index is what a millisecond there is worth to the job: the value of having it over, spread over the time that what is left of it takes
// (Smith's rule: W. E. Smith, Naval Research Logistics Quarterly 3, 1956), times its advantage as a share of its best (adr 0031). So of two
// jobs that are as long the one that is no faster on a large slice leaves it to the other.
func (Policy) Index(o policy.Outlook) int64 {
	return quantity.MulDiv(o.Worth/max(1, o.Left.Milliseconds()), o.Advantage, o.Best)
}

// Motion: the index of a job is its own, on each class of slices.
func (Policy) Motion() policy.Motion { return policy.ByClass }
