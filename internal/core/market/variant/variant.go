// Package variant holds a variant that somebody declares against everything that must be true of it, whoever it is from: no number that is
// declared passes a bound, and none makes a piece unsafe. It must not know what a variant is worth.
package variant

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Tick is the unit of time in which variants begin and end.
const Tick = time.Millisecond

// longestPlan bounds what an agent may declare, so that sums stay within 63 bits.
const longestPlan = 1 << 58

// Verified is a variant that stands, with what the scheduler takes instead of the declared. Invariant, once Verify has found nothing wrong:
// its work is for sale, on the grid, within the window, useful, and safe by the job's profile.
type Verified struct {
	protocol.Variant
	Job *index.Job
	// End of the lease, grace included; Never for a rigid job without a walltime.
	End quantity.Instant
	// Speed of the job there, with its option, in parts per thousand.
	Speed int64
}

// Verify fills in End and Speed, raises Demand to what the job's profile says and moves Start to the grid, and returns why the variant is
// denied, empty if it is valid. Denied, what is filled in means nothing.
func (t *Verified) Verify(now quantity.Instant, e *index.Estimator, view *atomizer.View, on *window.Slice, w *window.Window) string {
	j, v := t.Job, view
	s := j.Spec()
	offered := e.Within(j, on, now, w.End())
	t.Speed = offered.Speed
	if t.Option != "" {
		option := s.Option(t.Option)
		if option == nil {
			return fmt.Sprintf("the job has no option %.40q", t.Option)
		}
		other := *view
		other.Option = option
		t.Speed, v = max(1, quantity.MulDiv(t.Speed, option.Speed, 1000)), &other
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
	case v.Running >= v.Parallelism():
		return fmt.Sprintf("the job already runs the %d subjobs its parallelism allows", v.Parallelism())
	case t.Run <= 0 && (s.Kind != job.Rigid || s.Walltime != 0) || t.Wall < t.Run || t.Wall > longestPlan:
		return fmt.Sprintf("it plans to run %v of %v; want more than 0, and at most all of it", t.Run, t.Wall)
	case t.Start < now || t.Start >= offered.End:
		return "it does not begin within the window"
	}
	if why := v.Cut(t.Range, t.Run); why != "" {
		return why
	}
	t.Start = now.Add((t.Start.Sub(now) + Tick - 1) / Tick * Tick)
	wall := time.Duration(quantity.MulDiv(int64(t.Wall), e.Slowdown(j, v), 1000))
	if t.End = t.Start.Add(wall + s.Launch.Grace); s.Kind == job.Rigid && s.Walltime == 0 {
		if w.End() != quantity.Never {
			return "a job without a walltime needs a window without an end"
		}
		t.End = quantity.Never
	} else if t.End = min(now.Add((t.End.Sub(now)+Tick-1)/Tick*Tick), max(t.End, offered.End)); t.End > offered.End {
		return fmt.Sprintf("it ends %v after the window, grace included", t.End.Sub(offered.End))
	}
	t.Demand[trp.Memory] = max(t.Demand[trp.Memory], v.Needs(t.Range))
	if capacity := on.Class().Capacity; !t.Demand.Fits(capacity) {
		return fmt.Sprintf("it needs %d MiB to be safe, the slice has %d MiB", t.Demand[trp.Memory]>>20, capacity[trp.Memory]>>20)
	}
	return ""
}
