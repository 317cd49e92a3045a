// Package throughput asks the job that uses the slices best: the one that is fastest on them for their size, and could not be as fast
// elsewhere; a job that is over much sooner goes before one that uses them slightly better (adr 0031). It has the most useful work of the
// policies where jobs' speeds differ from class to class; a job that is slow everywhere waits for all others.
package throughput

import (
	"cmp"
	"math/bits"

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

const (
	// fraction is how many binary digits of an octave are seen, thousandth what a thousandth of gain counts beside them: an octave of
	// brevity is as much as 64 thousandths of gain.
	fraction   = 14
	thousandth = 1 << 8
	mostGain   = 1 << 20
)

// Index is the job's gain, its advantage times the share that this is of its best, and its brevity, what a millisecond of having it over is
// worth, by octaves. It is below 2^29, and what jobs are worth one after the other is about the sum.
func (Policy) Index(o policy.Outlook) int64 {
	gain := quantity.MulDiv(o.Advantage, o.Advantage, o.Best) / 1000
	return min(gain, mostGain)*thousandth + octaves(o.Worth/max(1, o.Left.Milliseconds()))
}

// octaves of x, at least 0: the number of its binary digits and, as a fraction, those behind the first. It grows as the logarithm does.
func octaves(x int64) int64 {
	n := bits.Len64(uint64(x))
	behind := uint64(x) << (64 - n) << 1 >> (64 - fraction)
	return int64(n)<<fraction | int64(behind)
}

// Motion: the advantage of a job is its own, on each class of slices.
func (Policy) Motion() policy.Motion { return policy.ByClass }
