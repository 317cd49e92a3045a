// Package throughput asks the job that makes the most of the slices: who is fastest on them for what they are, and who could not be as
// fast elsewhere. Of jobs that are alike in that the shortest is asked first, so that most are done (adr 0031). It has the most useful
// work of the policies where jobs' speeds differ from class to class; a job that is slow everywhere waits for all others.
package throughput

import (
	"cmp"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// Policy is the order.
type Policy struct{}

// Name is "throughput".
func (Policy) Name() string { return "throughput" }

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

// An index is the gain in thousandths above the bits of the brevity.
const (
	brevityBits = 43
	mostGain    = 1<<(63-brevityBits) - 1
	mostBrevity = 1<<brevityBits - 1
)

// Index is the job's gain, its advantage times the share that this is of its best, and where that is the same its brevity: what a
// millisecond of having it over is worth.
func (Policy) Index(o policy.Outlook) int64 {
	gain := quantity.MulDiv(o.Advantage, o.Advantage, o.Best) / 1000
	brevity := o.Worth / max(1, o.Left.Milliseconds()) >> 12 // 3,000 steps still for a job of a day
	return min(gain, mostGain)<<brevityBits | min(brevity, mostBrevity)
}

// Motion: the advantage of a job is its own, on each class of slices.
func (Policy) Motion() policy.Motion { return policy.ByClass }
