package markettest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Unsound says which promise of package award is broken if a piece is asked for now, empty if none is. It looks at nothing but the job, the
// gaps of the slice and the piece.
func Unsound(now quantity.Instant, d *Job, s *window.Slice, p *award.Piece) string {
	v := d.View()
	if p.Option != "" {
		i := slices.IndexFunc(d.Of.Options, func(o job.Option) bool { return o.Name == p.Option })
		if i < 0 {
			return "the job has no such option"
		}
		v.Option = &d.Of.Options[i]
	}
	within := func(g protocol.Gap) bool { return g.Start <= p.Start && p.End <= g.End }
	switch need := v.Needs(p.Range); {
	case d.Ineligible(now) != explain.Eligible:
		return "the job is to be sold nothing now"
	case p.Range.From < 0 || p.Range.From >= p.Range.To || p.Range.To > d.Of.Total:
		return "that is no work of the job"
	case d.Claimed.Overlaps(p.Range) || d.Committed.Overlaps(p.Range):
		return "the work is sold or done"
	case d.Running >= max(1, d.Of.Parallelism):
		return "the job runs as many subjobs as it may"
	case p.Start < now || p.End <= p.Start || !slices.ContainsFunc(s.Supply.Unsold(now, nil), within):
		return "that time is not for sale"
	case p.Demand[trp.Memory] < need || p.Demand[trp.Memory] > s.Class().Capacity[trp.Memory]:
		return fmt.Sprintf("it is given %d MiB, needs %d and may have %d", p.Demand[trp.Memory]>>20, need>>20,
			s.Class().Capacity[trp.Memory]>>20)
	case p.Speed <= 0 || p.Run < 0 || p.Wall < p.Run || p.Late < 0:
		return "its plan has a negative time or no speed"
	case p.Bid != nil && (p.Bid.Score < 0 || p.Bid.Score > score.One):
		return "its score is out of bounds"
	}
	return v.Cut(p.Range, p.Run)
}

// Lies is how many ways Lie knows.
const Lies = 16

// Lie is a variant as an agent sends it that does not mean it, in one of Lies ways, with a number to play with. Some lies are true for
// some jobs.
func Lie(v protocol.Variant, how int, by int64) protocol.Variant {
	extremes := []int64{0, -1, 1, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 1 << 58, 1<<58 + 1, -(1 << 40), 1 << 40}
	extreme := extremes[int(uint64(by)%uint64(len(extremes)))]
	switch how {
	case 0: // what is sold or done, or what others of its variants have
		v.Range.From, v.Range.To = v.Range.From-by*10, v.Range.To-by*10
	case 1:
		v.Range.From -= by
	case 2:
		v.Range.To += by
	case 3:
		v.Range.From = extreme
	case 4:
		v.Range.To = extreme
	case 5:
		v.Range.From, v.Range.To = v.Range.To, v.Range.From
	case 6: // it takes no time
		v.Run, v.Wall = 1, 1
	case 7:
		v.Run = time.Duration(extreme)
	case 8:
		v.Wall = time.Duration(extreme)
	case 9:
		v.Run, v.Wall = time.Duration(extreme), time.Duration(extreme)
	case 10:
		v.Start += quantity.Instant(by) * quantity.Instant(time.Second)
	case 11:
		v.Start = quantity.Instant(extreme)
	case 12:
		v.Demand[trp.Memory] = quantity.Amount(extreme)
	case 13:
		v.Score = extreme
	case 14:
		v.Window += uint64(by)
	case 15:
		v.Option = "none that it has"
	}
	return v
}
