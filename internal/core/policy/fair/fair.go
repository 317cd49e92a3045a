// Package fair asks the job of the queue that has had the least memory-time for its weight, then the job in it that
// has had the least (SYSTEMS.md 1.2: least attained memory-seconds over weight; our definition, ADR 0005).
package fair

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
)

// Policy is the order.
type Policy struct{}

// Name is "fair".
func (Policy) Name() string { return "fair" }

// Compare orders by the queue's attained share, then priority, then the job's attained share, then age.
func (Policy) Compare(a, b *policy.Candidate) int {
	return cmp.Or(
		policy.CompareShare(a.QueueAttained, a.Weight, b.QueueAttained, b.Weight),
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.Attained, b.Attained),
		policy.ByAge(a, b),
	)
}

// Motion: a queue's share grows while its jobs run.
func (Policy) Motion() policy.Motion { return policy.WithinQueue }
