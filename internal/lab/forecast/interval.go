package forecast

import (
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/prng"
)

// Interval is a figure with the ends between which it lies four times of five; NaN-free: where there are too few days Known is false and
// the ends are the figure's.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Known is false where the log has too few days for an interval.
	Known bool `json:"known"`
}

// The bootstrap: so many draws of a week, of at least so many stretches that were played.
const (
	draws          = 2000
	leastStretches = 3
)

// day is what one day of a stretch adds to a ratio.
type day struct{ over, under float64 }

// interval is the ratio of the sums, and what it is in 80% of the weeks that are put together from stretches as they were played, all of as
// many days.
// Few stretches show less of a spread than there is, so the ends are moved out as Student's t has it for the next one.
func interval(stretches [][]day, seed uint64) Interval {
	var all day
	blocks := make([]day, len(stretches))
	for i, days := range stretches {
		for _, d := range days {
			blocks[i].over, blocks[i].under = blocks[i].over+d.over, blocks[i].under+d.under
		}
		all.over, all.under = all.over+blocks[i].over, all.under+blocks[i].under
	}
	if all.under == 0 {
		return Interval{}
	}
	out := Interval{Value: all.over / all.under}
	out.Low, out.High = out.Value, out.Value
	if len(blocks) < leastStretches {
		return out
	}
	r, week := prng.New(seed, prng.Name("forecast")), max(1, 7/len(stretches[0]))
	values := make([]float64, 0, draws)
	for range draws {
		var sum day
		for range week {
			d := blocks[r.IntN(len(blocks))]
			sum.over, sum.under = sum.over+d.over, sum.under+d.under
		}
		if sum.under > 0 {
			values = append(values, sum.over/sum.under)
		}
	}
	if len(values) == 0 {
		return out
	}
	slices.Sort(values)
	wide := widened(len(blocks), week)
	out.Low, out.High, out.Known = out.Value-wide*(out.Value-quantile(values, .1)), out.Value+wide*(quantile(values, .9)-out.Value), true
	return out
}

// within is an interval without what can't be.
func (i Interval) within(least, most float64) Interval {
	i.Low, i.High = max(i.Low, least), min(i.High, most)
	return i
}

// widened is how much wider the interval for the mean of the next values, a week of them, is than the normal law has it where mean and
// spread are known, when both are taken from n values.
func widened(n, week int) float64 {
	const normal = 1.2816 // 90%
	student := [...]float64{2: 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397}
	return student[min(n, len(student))-1] / normal * math.Sqrt(1+float64(week)/float64(n))
}

// quantile of sorted values, between the two nearest.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
