package market

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// index is what the policy makes of a job on a class of slices, 0 if it can't run there or the policy has no index: what it costs to
// find is then not spent.
func (f *Floor) index(j *Job, c *Class) int64 {
	if f.indexer == nil {
		return 0
	}
	if o, runs := f.outlook(j, c); runs {
		return f.indexer.Index(o)
	}
	return 0
}

// trusted is the index of a job as far as it is believed. What an agent says of its work decides how long the job seems, and so its index
// counts by its record, or its queue's. What built-in kinds say of theirs is learned from what they ran.
func (f *Floor) trusted(j *Job, c *Class) int64 {
	x := f.index(j, c)
	if x == 0 || !j.Spec().External || f.cfg.Market.Trusting {
		return x
	}
	record := j.Trust()
	return max(1, quantity.MulDiv(x, f.cfg.Market.Trust().Rho(&record), score.One))
}

// density is what a millisecond of a slice of a class is worth to a job, whatever the policy; 0 if it can't run there.
func (f *Floor) density(j *Job, c *Class) int64 {
	if o, runs := f.outlook(j, c); runs {
		return o.Density()
	}
	return 0
}

// outlook of a job on a class that it can run on. It changes with the job alone.
func (f *Floor) outlook(j *Job, c *Class) (o policy.Outlook, runs bool) {
	spec := j.Spec()
	speed := c.SpeedOf(spec)
	if speed == 0 {
		return policy.Outlook{}, false
	}
	return policy.Outlook{
		Worth: worth(spec), Left: f.left(j, speed),
		Advantage: c.advantage(spec), Best: f.advantage(spec),
	}, true
}

// job1 is what having a job of priority 0 over is worth: so much that the densities of jobs of a year differ still, and those of a
// millisecond and the highest priority stay within 63 bits.
const job1 = 1 << 50

// worth of having a job over, which its priority decides.
func worth(spec *job.Spec) int64 {
	return quantity.MulDiv(job1, precedence(spec.Priority), precedence(0))
}

// left is the time that what is unsold of a job takes at a speed above 0.
func (f *Floor) left(j *Job, speed int64) time.Duration {
	spec := j.Spec()
	if spec.Kind == job.Rigid {
		return f.rigidLeft(spec, speed)
	}
	v := j.View()
	return time.Duration(quantity.MulDiv(int64(v.RunTime(v.Left(), speed)), f.slowdown(j, &v), 1000))
}

// rigidLeft is the same of a rigid job.
func (f *Floor) rigidLeft(spec *job.Spec, speed int64) time.Duration {
	if spec.Walltime == 0 {
		return f.cfg.Horizon // nobody knows: neither before all others nor for ever behind them
	}
	return spec.WalltimeAt(speed)
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

// outdoes says whether a job has a greater advantage on the newest class than on all others: its index on those is another now.
func (f *Floor) outdoes(spec *job.Spec, newest *Class) bool {
	if f.indexer == nil {
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
