// Package fifo asks the job that was submitted first, higher priorities before lower ones.
package fifo

import "sluice.dev/sluice/internal/core/policy"

// Policy is the order.
type Policy struct{}

// Name is "fifo".
func (Policy) Name() string { return "fifo" }

// Compare orders by priority, then submission.
func (Policy) Compare(a, b *policy.Candidate) int { return policy.ByAge(a, b) }

// Key is the age.
func (Policy) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{policy.Age(c.Priority, c.Submitted)}
}

// Motion: a job's place in the queue is its own.
func (Policy) Motion() policy.Motion { return policy.Still }
