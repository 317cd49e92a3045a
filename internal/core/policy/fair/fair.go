// Package fair asks the job of the queue that has had the least memory-time for its weight, and within a queue the oldest: the
// least attained memory-seconds over weight (adr 0005).
package fair

import (
	"sluice.dev/sluice/internal/core/policy"
)

// Policy is the order.
type Policy struct{}

// Name is "fair".
func (Policy) Name() string { return "fair" }

// Compare orders by the queue's attained share, then by age.
func (Policy) Compare(a, b *policy.Candidate) int {
	if c := policy.CompareShare(a.QueueAttained, a.Weight, b.QueueAttained, b.Weight); c != 0 {
		return c
	}
	return policy.ByAge(a, b)
}

// Key is the age: jobs of one queue have one share.
func (Policy) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{policy.Age(c.Priority, c.Submitted)}
}

// Motion: a queue's share grows while its jobs run.
func (Policy) Motion() policy.Motion { return policy.WithinQueue }
