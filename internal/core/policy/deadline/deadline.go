// Package deadline asks the job with the least laxity: the time to its owner's deadline less the run time it still needs
// (our definition, ADR 0005). Jobs without a deadline come last, by priority.
package deadline

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
)

// Policy is the order.
type Policy struct{}

// Name is "deadline".
func (Policy) Name() string { return "deadline" }

// Compare orders by laxity, then priority and age.
func (Policy) Compare(a, b *policy.Candidate) int {
	return cmp.Or(
		cmp.Compare(a.Laxity, b.Laxity),
		policy.ByAge(a, b),
	)
}

// Key is the laxity and the age.
func (Policy) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{int64(c.Laxity), policy.Age(c.Priority, c.Submitted)}
}

// Motion: the laxity of all jobs shrinks alike.
func (Policy) Motion() policy.Motion { return policy.Still }
