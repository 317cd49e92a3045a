package market

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// longestPlan bounds what an agent may declare, so that sums stay within 63 bits.
const longestPlan = 1 << 58

// verify holds a variant against everything that must be true of it, whatever was declared: work that is for sale, on the
// grid, within the window, useful, and safe by the job's profile. It fills in what the scheduler takes instead of the
// agent's word: the memory, the speed and the end of the lease. It says what is wrong, empty if nothing is.
func (f *Floor) verify(now quantity.Instant, t *bid, view *atomizer.View, o *offer, w *window) string {
	j, v := t.job, view
	s := j.Spec()
	offered := f.Within(j, o.slice, now, w.end)
	t.speed = offered.Speed
	if t.Option != "" {
		option := s.Option(t.Option)
		if option == nil {
			return fmt.Sprintf("the job has no option %.40q", t.Option)
		}
		other := *view
		other.Option = option
		t.speed, v = max(1, quantity.MulDiv(t.speed, option.Speed, 1000)), &other
	}
	switch {
	case offered.Speed == 0:
		return "the job can not run on this kind of slice"
	case t.Score < 0 || t.Score > score.One:
		return fmt.Sprintf("its score is %d millionths; want 0 to 1000000", t.Score)
	case t.Range.Empty() || t.Range.From < 0 || t.Range.To > s.Total:
		return fmt.Sprintf("its range [%d,%d) is no work of the job, which has %d units", t.Range.From, t.Range.To, s.Total)
	case v.Committed.Overlaps(t.Range) || v.Claimed.Overlaps(t.Range):
		return fmt.Sprintf("some of [%d,%d) is sold or done already", t.Range.From, t.Range.To)
	case v.Running >= s.Parallelism:
		return fmt.Sprintf("the job already runs the %d subjobs its parallelism allows", s.Parallelism)
	case t.Run <= 0 && (s.Kind != job.Rigid || s.Walltime != 0) || t.Wall < t.Run || t.Wall > longestPlan:
		return fmt.Sprintf("it plans to run %v of %v; want more than 0, and at most all of it", t.Run, t.Wall)
	case t.Start < now || t.Start >= offered.End:
		return "it does not begin within the window"
	}
	if why := v.Cut(t.Range, t.Run); why != "" {
		return why
	}
	t.Start = now.Add((t.Start.Sub(now) + tick - 1) / tick * tick) // as clearing counts
	if t.end = t.Start.Add(f.paced(t, v) + s.Launch.Grace); s.Kind == job.Rigid && s.Walltime == 0 {
		if w.end != quantity.Never {
			return "a job without a walltime needs a window without an end"
		}
		t.end = quantity.Never
	} else if t.end = min(now.Add((t.end.Sub(now)+tick-1)/tick*tick), max(t.end, offered.End)); t.end > offered.End {
		return fmt.Sprintf("it ends %v after the window, grace included", t.end.Sub(offered.End))
	}
	t.Demand[trp.Memory] = max(t.Demand[trp.Memory], v.Needs(t.Range))
	if !t.Demand.Fits(o.slice.class.Capacity) {
		return fmt.Sprintf("it needs %d MiB to be safe, the slice has %d MiB", t.Demand[trp.Memory]>>20,
			o.slice.class.Capacity[trp.Memory]>>20)
	}
	return ""
}

// leastPaced is how many subjobs must have been observed before an agent's run times are corrected.
const leastPaced = 3

// mostSlowdown bounds the correction, in parts per thousand.
const mostSlowdown = 4000

// paced is the time a variant gets: what an external job's agent plans, longer where its subjobs have taken longer than
// planned so far. Built-in kinds plan with what they have learned already.
func (f *Floor) paced(t *bid, v *atomizer.View) time.Duration {
	return time.Duration(quantity.MulDiv(int64(t.Wall), f.slowdown(t.job, v), 1000))
}

// slowdown is what a plan of a job is multiplied by, in parts per thousand.
func (f *Floor) slowdown(j *Job, v *atomizer.View) int64 {
	p := &v.Learned.Trust
	if !j.Spec().External || f.cfg.Market == nil || f.cfg.Market.Trusting || p.Seen < leastPaced {
		return 1000
	}
	return min(max(p.Pace, 1000), mostSlowdown)
}
