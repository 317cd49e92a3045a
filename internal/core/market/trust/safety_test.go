package trust_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// alarms plays one job whose true rate of excess is p: it returns after how many runs the alarm comes, 0 if it does not within
// most. The alarm can come only with an excess (TestEvidenceFollowsTheRuns), so only those are drawn, by their distances.
func alarms(rng *prng.Stream, p float64, theta, most int64) int64 {
	var record protocol.Trust
	for {
		record.Runs += 1 + int64(rng.Exp()/-math.Log1p(-p))
		record.Excess++
		if record.Runs > most {
			return 0
		}
		if trust.Unsafe(&record, theta) {
			return record.Runs
		}
	}
}

// The size of the test: of 10,000 jobs that keep their promise just so, for fifty times as many runs as make one excess on
// average, at most alpha are ever found not to, though each is looked at after every run.
func TestFalseAlarms(t *testing.T) {
	const jobs = 10_000
	for _, c := range []struct {
		theta int64
		share float64 // of theta that is true
	}{{1_000, 1}, {10_000, 1}, {50_000, 1}, {300_000, 1}, {10_000, .7}} {
		p := c.share * float64(c.theta) / 1e6
		wrong := 0
		for i := range uint64(jobs) {
			rng := prng.New(prng.Name("size"), uint64(c.theta), i)
			if alarms(&rng, p, c.theta, int64(50/p)) > 0 {
				wrong++
			}
		}
		rate := float64(wrong) / jobs
		t.Logf("theta %v, true rate %.2f of it: %.4f of the jobs", float64(c.theta)/1e6, c.share, rate)
		if rate > float64(trust.Alpha)/1e6 {
			t.Errorf("theta %v, true rate %v of it: %v of the jobs were accused, want at most %v", float64(c.theta)/1e6, c.share, rate,
				float64(trust.Alpha)/1e6)
		}
		if c.share == 1 && wrong == 0 {
			t.Errorf("theta %v: nobody was accused; the test can not have any power", float64(c.theta)/1e6)
		}
	}
}

// The power of the test: the mean of the runs until the alarm where the true rate is times theta, and how many jobs are found
// out only after more than twice as many.
func TestPower(t *testing.T) {
	const jobs = 4_000
	for _, c := range []struct {
		theta int64
		times float64
		mean  float64
	}{
		{10_000, 2, 1260}, {10_000, 5, 111}, {10_000, 10, 31}, {10_000, 50, 3},
		{1_000, 2, 12_400}, {1_000, 10, 321}, {50_000, 2, 230}, {50_000, 5, 20},
	} {
		var sum float64
		late := 0
		for i := range uint64(jobs) {
			rng := prng.New(prng.Name("power"), uint64(c.theta), uint64(c.times), i)
			n := alarms(&rng, c.times*float64(c.theta)/1e6, c.theta, math.MaxInt64)
			sum += float64(n)
			if float64(n) > 2*c.mean {
				late++
			}
		}
		mean, share := sum/jobs, float64(late)/jobs
		t.Logf("theta %v, %v times it: after %.1f runs, %.3f of the jobs after more than twice as many", float64(c.theta)/1e6, c.times,
			mean, share)
		if math.Abs(mean-c.mean) > .05*c.mean || share > .15 {
			t.Errorf("theta %v, %v times it: after %.1f runs in the mean, want %v; %.3f of the jobs after more than twice as many, want "+
				"at most .15", float64(c.theta)/1e6, c.times, mean, c.mean, share)
		}
	}
}

// naive is the e-value as a bet after every run, in the order of the runs: eight purses of 1/8 that each multiply the odds.
func naive(excesses []bool, theta float64) float64 {
	var value float64
	for i := 1; i <= 8; i++ {
		odds := math.Pow(2, float64(i))
		purse := 1. / 8
		for _, excess := range excesses {
			gain := 1 / (1 + (odds-1)*theta)
			if excess {
				gain *= odds
			}
			purse *= gain
		}
		value += purse
	}
	return value
}

func TestEvidenceFollowsTheRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theta := rapid.Int64Range(1, trp.MaxThetaPPM).Draw(t, "theta")
		excesses := rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "runs")
		var record protocol.Trust
		for i, excess := range excesses {
			before := record.Evidence
			o := trust.Observation{Predicted: 100, Peak: 100, Theta: theta}
			if excess {
				o.Peak++
			}
			settings.Observe(&record, o)
			want := math.Log(naive(excesses[:i+1], float64(theta)/1e6))
			if got := float64(record.Evidence) / 1e6; math.Abs(got-want) > 1e-6 {
				t.Fatalf("after %v: evidence %v, want %v", excesses[:i+1], got, want)
			}
			if excess != (record.Evidence > before) && record.Evidence != before {
				t.Fatalf("an excess (%v) moved the evidence from %d to %d", excess, before, record.Evidence)
			}
			if alarm := math.Log(20); trust.Unsafe(&record, theta) != (want >= alarm) && math.Abs(want-alarm) > 2e-6 {
				t.Fatalf("evidence %v: unsafe is %v", want, trust.Unsafe(&record, theta))
			}
		}
	})
}

// What makes it a fair bet: over all outcomes of n runs at a rate of theta the e-value is 1 in the mean, and below theta less.
func TestTheBetIsFair(t *testing.T) {
	for _, theta := range []int64{1_000, 10_000, 200_000, 500_000} {
		for _, n := range []int64{1, 10, 200} {
			for _, share := range []float64{1, .5} {
				p := share * float64(theta) / 1e6
				var mean, choose float64 // log of n over k
				for k := range n + 1 {
					if k > 0 {
						choose += math.Log(float64(n-k+1)) - math.Log(float64(k))
					}
					chance := choose + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p) // its log
					mean += math.Exp(chance + float64(trust.Evidence(n, k, theta))/1e6)
				}
				if math.Abs(mean-1) > 1e-5 == (share == 1) || mean > 1.00001 {
					t.Errorf("theta %d ppm, %v of it, %d runs: the bet returns %v", theta, share, n, mean)
				}
			}
		}
	}
}

func TestWhatCountsAsAnExcess(t *testing.T) {
	for _, c := range []struct {
		name            string
		predicted, peak quantity.Amount
		theta           int64
		runs, excess    int64
	}{
		{"at the prediction", 100, 100, 10_000, 1, 0},
		{"above it", 100, 101, 10_000, 1, 1},
		{"no peak was observed", 100, 0, 10_000, 0, 0},
		{"nothing was predicted", 0, 100, 10_000, 0, 0},
		{"of a queue", 100, 101, 0, 1, 1},
	} {
		var record protocol.Trust
		settings.Observe(&record, trust.Observation{Predicted: c.predicted, Peak: c.peak, Theta: c.theta})
		if record.Runs != c.runs || record.Excess != c.excess {
			t.Errorf("%s: %d of %d, want %d of %d", c.name, record.Excess, record.Runs, c.excess, c.runs)
		}
		if known := c.theta > 0 && c.runs > 0; (record.Evidence != 0) != known {
			t.Errorf("%s: evidence %d", c.name, record.Evidence)
		}
	}
	var none protocol.Trust
	if trust.Unsafe(&none, 10_000) || trust.Evidence(0, 0, 10_000) != 0 {
		t.Error("no run is evidence of nothing")
	}
}

func TestInflate(t *testing.T) {
	record := protocol.Trust{Error: 5, History: 6, Seen: 7, Runs: 30, Excess: 4, Evidence: 3_100_000}
	if got := trust.Inflate(&record, 0); got != 1500 {
		t.Errorf("the first spread is %d, want 1500", got)
	}
	if want := (protocol.Trust{Error: 5, History: 6, Seen: 7}); record != want {
		t.Errorf("leaves %+v, want %+v", record, want)
	}
	for _, c := range []struct{ from, want int64 }{{1000, 1500}, {1500, 2250}, {2250, 3375}, {15_000, trp.MaxSpread},
		{trp.MaxSpread, trp.MaxSpread}} {
		if got := trust.Inflate(&record, c.from); got != c.want {
			t.Errorf("after %d comes %d, want %d", c.from, got, c.want)
		}
	}
}
