package market

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// density is what a millisecond of a slice of a class is worth to a job: the value of having the job over, spread over the time that
// what is left of it takes there (Smith's rule: W. E. Smith, Naval Research Logistics Quarterly 3, 1956), times its advantage there as
// a share of its best (adr 0031). So of two jobs that are as long the one that is no faster on a large slice leaves it to the other.
// It changes with the job alone. For a policy that does not read it it is 0.
func (f *Floor) density(j *Job, c *Class) int64 {
	spec := j.Spec()
	speed := c.SpeedOf(spec)
	if speed == 0 || !f.dense() {
		return 0
	}
	worth := quantity.MulDiv(job1, precedence(spec.Priority), precedence(0)) / max(1, f.left(j, speed).Milliseconds())
	return quantity.MulDiv(worth, c.advantage(spec), f.advantage(spec))
}

// dense says whether the policy reads densities.
func (f *Floor) dense() bool { return f.cfg.Policy.Motion() == policy.ByClass }

// job1 is what having a job of priority 0 over is worth: so much that the densities of jobs of a year differ still, and those of a
// millisecond and the highest priority stay within 63 bits.
const job1 = 1 << 50

// left is the time that what is unsold of a job takes at a speed above 0.
func (f *Floor) left(j *Job, speed int64) time.Duration {
	switch spec := j.Spec(); {
	case spec.Kind != job.Rigid:
		v := j.View()
		return v.RunTime(v.Left(), speed)
	case spec.Walltime == 0:
		return f.cfg.Horizon // nobody knows: neither before all others nor for ever behind them
	default:
		return spec.WalltimeAt(speed)
	}
}

// advantage of a job on a class is its speed there over the class's own, in millionths: what it makes of what the slice is.
func (c *Class) advantage(spec *job.Spec) int64 {
	return quantity.MulDiv(c.SpeedOf(spec), 1_000_000, max(1, c.Speed))
}

// advantage of a job on its best class, at least 1.
func (f *Floor) advantage(spec *job.Spec) int64 {
	best := int64(1)
	if len(spec.Speeds) == 0 {
		return 1_000_000 // it runs at each slice's own speed
	}
	for _, c := range f.classes {
		best = max(best, c.advantage(spec))
	}
	return best
}

// outdoes says whether a job has a greater advantage on the newest class than on all others: what it is worth there is less now.
func (f *Floor) outdoes(spec *job.Spec, newest *Class) bool {
	if !f.dense() {
		return false
	}
	best := int64(math.MinInt64)
	for _, c := range f.classes {
		if c != newest {
			best = max(best, c.advantage(spec))
		}
	}
	return len(f.classes) > 1 && newest.advantage(spec) > best
}
