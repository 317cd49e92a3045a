package trp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func TestQuantiles(t *testing.T) {
	for _, c := range []struct{ ppm, want int64 }{{10_000, 2_326_348}, {50_000, 1_644_854}, {1_000, 3_090_233}, {1, 4_753_425},
		{158_655, 1_000_002}, {500_000, 0}} {
		got := trp.Quantile(c.ppm)
		if got != c.want {
			t.Errorf("the quantile of %d ppm is %d, want %d", c.ppm, got, c.want)
		}
		if back := trp.Beyond(got); back != c.ppm {
			t.Errorf("beyond %d are %d ppm, want %d", got, back, c.ppm)
		}
	}
}

func peakOver(p trp.Profile, from, to, theta int64, demand quantity.Amount) trp.Peak {
	return trp.PeakOver(&p, from, to, trp.Unscaled, theta, demand)
}

func TestPeaksOfPieces(t *testing.T) {
	two := phases([3]float64{10, 14, 1}, [3]float64{20, 14, 1})
	two.Combine = trp.Independent
	runs := trp.Profile{Form: trp.Ensemble, Bounds: []int64{10, 20}, Runs: [][]quantity.Amount{{gb(4), gb(9)}, {gb(11), gb(2)},
		{gb(10), gb(10)}, {gb(10), gb(1)}}}
	for _, c := range []struct {
		name            string
		profile         trp.Profile
		from, to        int64
		demand          float64
		mean, deviation float64
		within          float64
	}{
		{"one phase is its own", sja, 0, 600, 6.697904424, 6, .3, 1e-6},
		{"a part of it too", sja, 5, 6, 6.697904424, 6, .3, 1e-6},
		{"what was learned beyond it is mean", sja, 0, 600, 7.697904424, 7, .3, 1e-6},
		{"less than its quantile narrows it", sja, 0, 600, 6.2326348, 6, .1, 1e-6},
		{"less than its mean leaves nothing to chance", sja, 0, 600, 5, 5, 0, 0},
		// Clark 1961: the larger of two has the mean 1/sqrt(pi); its deviation is .8256, and it is widened to reach the quantile at 2.575.
		{"the larger of two", two, 0, 20, 16.574961, 14.564190, .864343, .01},
		{"phases far apart: the largest", sja, 0, 5400, 24.326347874, 22, 1, .02},
		{"recorded runs", runs, 0, 20, 12, 10, .859717, 1e-6},
		{"an envelope is its quantile", trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 20, Amount: gb(5)}}}, 0, 20, 5, 5, 0, 0},
		{"no units", sja, 7, 7, 3, 3, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := peakOver(c.profile, c.from, c.to, theta01, gb(c.demand))
			if m, d := float64(got.Mean)/1e9, float64(got.Deviation)/1e9; math.Abs(m-c.mean) > c.within ||
				math.Abs(d-c.deviation) > c.within {
				t.Errorf("mean %f and deviation %f, want %f and %f", m, d, c.mean, c.deviation)
			}
		})
	}
	if got, want := trp.PeakOver(&two, 0, 10, 2000, theta01, gb(32.652696)),
		(trp.Peak{Mean: gb(28), Deviation: gb(2)}); math.Abs(float64(got.Mean-want.Mean)) > 1000 ||
		math.Abs(float64(got.Deviation-want.Deviation)) > 1000 {
		t.Errorf("at twice the scale %+v, want %+v", got, want)
	}
}

// TestAPeakAloneIsJudgedAsByTheta: mean and deviation give the demand at the quantile of theta, never less.
func TestAPeakAloneIsJudgedAsByTheta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total := drawPhases(t)
		theta := rapid.Int64Range(1, 400_000).Draw(t, "ppm")
		table, err := trp.Compile(p, total, theta)
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.Int64Range(0, total-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, total).Draw(t, "to")
		demand := table.LeastOver(from, to, trp.Unscaled)
		got := peakOver(p, from, to, theta, demand)
		if got.Mean > demand || got.Mean < 0 || got.Deviation < 0 {
			t.Fatalf("%+v for a demand of %d", got, demand)
		}
		if at := got.Mean + quantity.Amount(quantity.MulDiv(int64(got.Deviation), trp.Quantile(theta), 1_000_000)); at < demand {
			t.Fatalf("%+v comes to %d at its quantile, the demand is %d", got, at, demand)
		}
	})
}

// TestThePeakIsThatOfItsDistribution: mean and deviation against draws, where phases are independent.
func TestThePeakIsThatOfItsDistribution(t *testing.T) {
	const n = 100_000
	for i, p := range []trp.Profile{
		phases([3]float64{1, 6, .5}, [3]float64{2, 14, 1}, [3]float64{3, 17, 1.2}),
		phases([3]float64{1, 14, 1.5}, [3]float64{2, 15, 1.2}, [3]float64{3, 15.5, 1}),
		phases([3]float64{1, 10, 0}, [3]float64{2, 10, 2}),
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p.Combine = trp.Independent
			r := rand.New(rand.NewPCG(3, uint64(i)))
			sum, squares := 0.0, 0.0
			for range n {
				peak := 0.0
				for _, ph := range p.Phases {
					peak = max(peak, float64(ph.Mean)/1e9+float64(ph.SD)/1e9*r.NormFloat64())
				}
				sum, squares = sum+peak, squares+peak*peak
			}
			mean := sum / n
			deviation := math.Sqrt(squares/n - mean*mean)
			table := compile(t, p, p.Phases[len(p.Phases)-1].UpTo, theta01)
			got := peakOver(p, 0, table.Total(), theta01, table.LeastOver(0, table.Total(), trp.Unscaled))
			if m := float64(got.Mean) / 1e9; math.Abs(m-mean) > .02 {
				t.Errorf("mean %f, drawn %f", m, mean)
			}
			if d := float64(got.Deviation) / 1e9; d < deviation-.02 {
				t.Errorf("deviation %f, drawn %f: it may be wider, and not narrower", d, deviation)
			}
		})
	}
}

func BenchmarkPeakOf3Phases(b *testing.B) {
	p := phases([3]float64{1, 6, .5}, [3]float64{2, 14, 1}, [3]float64{3, 17, 1.2})
	for b.Loop() {
		_ = trp.PeakOver(&p, 0, 3, trp.Unscaled, theta01, gb(20))
	}
}
