package measure

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketsHoldTheirMiddle(t *testing.T) {
	last := -1
	for _, v := range []time.Duration{0, 1, 255, 256, 257, 258, 511, 512, time.Second, time.Hour, 1 << 62, math.MaxInt64} {
		b := bucket(v)
		if b < last || b >= buckets {
			t.Errorf("bucket(%d) = %d after %d; want it to rise and stay below %d", v, b, last, buckets)
		}
		last = b
		if got := middle(b); bucket(got) != b {
			t.Errorf("middle(%d) = %d lies in bucket %d", b, got, bucket(got))
		}
	}
}

func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few values of many orders of magnitude, each many times, so that both ways of counting are met.
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(1, 60).Draw(t, "bits")).Draw(t, "v"))
		}), 1, 60).Draw(t, "values")
		times := rapid.SampledFrom([]int{1, exactMost/60 + 1, exactMost}).Draw(t, "times")
		h := newHistogram()
		var all []time.Duration
		for range times {
			for _, v := range values {
				h.add(v)
				all = append(all, v)
			}
		}
		slices.Sort(all)
		bound := QuantileError
		if len(all) <= exactMost {
			bound = 0
		}
		qs := []float64{.001, .5, .95, .99, 1}
		for i, got := range h.quantiles(qs...) {
			want := all[max(int(math.Ceil(qs[i]*float64(len(all))))-1, 0)].Seconds()
			if math.Abs(got-want) > bound*want+1e-12*want {
				t.Fatalf("quantile %g of %d values is %g, want %g within %g", qs[i], len(all), got, want, bound)
			}
		}
		curve := h.curve()
		if len(curve) != curveSteps || curve[curveSteps-1].Share != 1 ||
			!slices.IsSortedFunc(curve, func(a, b Point) int { return cmp.Compare(a.Seconds, b.Seconds) }) {
			t.Fatalf("the curve %v does not rise to 1", curve)
		}
	})
}

func TestNothingMeasured(t *testing.T) {
	h := newHistogram()
	if !math.IsNaN(h.mean()) || !math.IsNaN(h.quantiles(.5)[0]) || h.curve() != nil {
		t.Errorf("no values: mean %g, median %g, curve %v; want NaN, NaN, none", h.mean(), h.quantiles(.5)[0], h.curve())
	}
}

func TestAreasOfAnySize(t *testing.T) {
	var a area
	want := 0.0
	for _, p := range [][2]int64{{3, 4}, {math.MaxInt64, math.MaxInt64}, {math.MaxInt64, 5}, {0, 7}, {1 << 40, 1 << 40}} {
		a.add(p[0], p[1])
		want += float64(p[0]) * float64(p[1])
	}
	if got := a.float(); math.Abs(got-want) > 1e-14*want {
		t.Errorf("the sum is %g, want %g", got, want)
	}
}
