package synthetic_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// errors is how many standard errors a statistic may be off. All streams are fixed, so that a test passes always or never.
const errors = 4

// sample is a mean with its standard error.
type sample struct{ n, sum, squares float64 }

func (s *sample) add(x float64) { s.n++; s.sum += x; s.squares += x * x }
func (s *sample) mean() float64 { return s.sum / s.n }
func (s *sample) se() float64 {
	return math.Sqrt(max(0, s.squares/s.n-s.mean()*s.mean()) / s.n)
}

func (s *sample) want(t *testing.T, what string, want float64) {
	t.Helper()
	if off := math.Abs(s.mean() - want); off > errors*s.se() {
		t.Errorf("%s is %.4g, want %.4g +- %.2g", what, s.mean(), want, errors*s.se())
	}
}

func TestPoisson(t *testing.T) {
	c := synthetic.Poisson{MeanGap: 20 * time.Second}.Start(prng.New(1))
	var mean, square sample
	for range 100_000 {
		g := c.Gap()
		mean.add(g)
		square.add(g * g)
	}
	mean.want(t, "the mean gap", 20)
	square.want(t, "the mean square of a gap", 800) // CV 1
}

// The counts of the bursty process have the index of dispersion that its formula gives, and that is Philly's.
func TestDispersion(t *testing.T) {
	for _, c := range []struct {
		window          time.Duration
		published, near float64
	}{{time.Minute, 10, .5}, {10 * time.Minute, 58, 4}, {time.Hour, 161, 4}, {24 * time.Hour, 867, 50}} {
		p := synthetic.Philly()
		want := p.Dispersion(c.window)
		if math.Abs(want-c.published) > c.near {
			t.Errorf("dispersion in windows of %s is %.1f, published is %.0f", c.window, want, c.published)
		}
		const streams = 3000
		var mean, squares sample
		rate := c.window.Seconds() / p.MeanGap.Seconds()
		for i := range uint64(streams) {
			clock := p.Start(prng.New(2, i))
			windows := max(1, int(4*time.Hour/c.window))
			var n, s2 float64
			at := clock.Gap()
			for w := range windows {
				k := 0.
				for ; at < float64(w+1)*c.window.Seconds(); at += clock.Gap() {
					k++
				}
				n, s2 = n+k, s2+(k-rate)*(k-rate)
			}
			mean.add(n / float64(windows))
			squares.add(s2 / float64(windows) / rate)
		}
		mean.want(t, "arrivals in "+c.window.String(), rate)
		squares.want(t, "dispersion in "+c.window.String(), want)
	}
}

func TestDayHasItsRatio(t *testing.T) {
	g := synthetic.Jobs{Seed: 3, Process: synthetic.Poisson{MeanGap: time.Second}, Diurnal: 9, Count: 400_000}
	var byHour [24]float64
	var a workload.Arrival
	last := quantity.Instant(0)
	for in := g.Open(); ; {
		ok, err := in.Next(&a)
		if err != nil || !ok {
			break
		}
		if a.Submit < last {
			t.Fatalf("job %d comes at %d, before the last", a.Key, a.Submit)
		}
		last = a.Submit
		if day := time.Duration(a.Submit) / (24 * time.Hour); day < 4 { // four whole days
			byHour[time.Duration(a.Submit)%(24*time.Hour)/time.Hour]++
		}
	}
	for h, n := range byHour {
		// The integral of 1 + .8 cos over the hour.
		const turn = 2 * math.Pi / 24
		want := 4 * 3600 * (1 + .8/turn*(math.Sin(turn*(float64(h)+1-16.5))-math.Sin(turn*(float64(h)-16.5))))
		if math.Abs(n-want) > errors*math.Sqrt(want) {
			t.Errorf("hour %d: %.0f jobs, want %.0f", h, n, want)
		}
	}
}

// The mixtures have Philly's logarithmic moments within the error of sampling, and its quantiles within four percent of the
// jobs.
func TestDurationsArePhillys(t *testing.T) {
	for _, c := range []struct {
		name          string
		of            synthetic.Mixture
		mu, sd, mean  float64
		p, quantileAt []float64
	}{
		{"all", synthetic.PhillyDurations(), 6.988, 2.02, 12_600, []float64{.05, .25, .5, .75, .9, .99},
			[]float64{49, 243, 1486, 2869, 10538, 268985}},
		{"one GPU", synthetic.PhillySingles(), 6.926, 1.84, 7_450, []float64{.05, .25, .5, .75, .9, .99},
			[]float64{53, 275, 1477, 2753, 7236, 113808}},
	} {
		const n = 200_000
		s := prng.New(4)
		drawn := make([]float64, n)
		var mu, variance, mean sample
		for i := range drawn {
			drawn[i] = c.of.Draw(&s).Seconds()
			l := math.Log(drawn[i])
			mu.add(l)
			variance.add((l - c.mu) * (l - c.mu))
			mean.add(drawn[i])
		}
		mu.want(t, c.name+": the mean logarithm", c.mu)
		if sd := math.Sqrt(variance.mean()); math.Abs(sd-c.sd) > .02 {
			t.Errorf("%s: the deviation of the logarithm is %.3f, want %.2f", c.name, sd, c.sd)
		}
		if math.Abs(mean.mean()-c.mean) > .05*c.mean {
			t.Errorf("%s: the mean is %.0f s, stated is %.0f", c.name, mean.mean(), c.mean)
		}
		slices.Sort(drawn)
		for i, p := range c.p {
			at, _ := slices.BinarySearch(drawn, c.quantileAt[i])
			if got := float64(at) / n; math.Abs(got-p) > .04 {
				t.Errorf("%s: %.3f take less than %.0f s, published is %.2f", c.name, got, c.quantileAt[i], p)
			}
		}
	}
}

func TestPlainDurations(t *testing.T) {
	s := prng.New(5)
	var uniform, logs sample
	for range 50_000 {
		u := synthetic.Uniform{From: time.Second, To: 3 * time.Second}.Draw(&s)
		if u < time.Second || u >= 3*time.Second {
			t.Fatalf("%s is not from 1 s to 3 s", u)
		}
		uniform.add(u.Seconds())
		logs.add(math.Log(synthetic.LogNormal{Median: 100 * time.Second, Sigma: 1.5}.Draw(&s).Seconds() / 100))
	}
	uniform.want(t, "the mean of a uniform", 2)
	logs.want(t, "the mean logarithm", 0)
	if got := synthetic.Fixed(time.Minute).Draw(&s); got != time.Minute {
		t.Errorf("a fixed minute is %s", got)
	}
	if d := (synthetic.LogNormal{Median: time.Hour, Sigma: 1000}).Draw(&s); d < 0 {
		t.Errorf("an enormous duration overflows: %d", d)
	}
}

func TestProgramsAreLikeMISOs(t *testing.T) {
	list := synthetic.Programs(32)
	for _, c := range []struct {
		compute int
		mean    float64
	}{{1, .36}, {2, .54}, {3, .70}, {4, .77}, {7, 1}} {
		sum := 0.
		for _, p := range list {
			sum += float64(p.Speeds[c.compute]) / 1000
		}
		if got := sum / 32; math.Abs(got-c.mean) > .021 {
			t.Errorf("mean speed on %dg is %.3f, published is %.2f", c.compute, got, c.mean)
		}
	}
	var fit [3]int
	for _, p := range list {
		for i, usable := range []quantity.Amount{4864 << 20, 9856 << 20, 19968 << 20} {
			if p.Peak <= usable {
				fit[i]++
			}
		}
		for c, last := range map[int]int{2: 1, 3: 2, 4: 3, 7: 4} {
			if p.Speeds[c] < p.Speeds[last] {
				t.Errorf("%s is slower on %dg than on %dg", p.Name, c, last)
			}
		}
	}
	if fit != [3]int{21, 28, 32} {
		t.Errorf("%v programs fit 1g, 2g and 3g, published are 21, 28 and 32", fit)
	}
}

func TestShapesAreLikeGenTD26s(t *testing.T) {
	list := synthetic.Shapes(100)
	means := make([]float64, len(list))
	for i, s := range list {
		if s.Warm < 0 || s.Warm > s.Steady || s.Steady > 1000 || s.WarmShare+s.BurstShare > 1000 {
			t.Fatalf("%+v", s)
		}
		steady := 1000 - s.WarmShare - s.BurstShare
		means[i] = float64(s.WarmShare*s.Warm+steady*s.Steady+s.BurstShare*1000) / 1e6
	}
	slices.Sort(means)
	for _, q := range []struct{ p, want float64 }{{.05, .48}, {.5, .63}, {.95, .94}} {
		if got := means[int(q.p*100)]; math.Abs(got-q.want) > .01 {
			t.Errorf("mean over peak at %.2f is %.3f, published is %.2f", q.p, got, q.want)
		}
	}
}

func TestSizes(t *testing.T) {
	g := synthetic.Jobs{Seed: 6, GPUs: synthetic.PhillyGPUs(), Count: 50_000, Queues: 3}
	single := sample{}
	queues := map[string]int{}
	var a workload.Arrival
	for in := g.Open(); ; {
		if ok, _ := in.Next(&a); !ok {
			break
		}
		one := 0.
		if a.GPUs == 1 {
			one = 1
		}
		single.add(one)
		queues[a.Queue]++
	}
	single.want(t, "the share of jobs with one GPU", 50188./52849)
	if len(queues) != 3 {
		t.Errorf("queues: %v", queues)
	}
}

// What is drawn for one thing does not depend on another, and a stream opened again is the same.
func TestDrawsAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := synthetic.Jobs{Seed: rapid.Uint64().Draw(t, "seed"), Count: 50}
		h := g
		h.Durations = synthetic.Fixed(time.Hour)
		again, a, b := g.Open(), g.Open(), h.Open()
		for {
			var x, y, z workload.Arrival
			okX, _ := a.Next(&x)
			okY, _ := b.Next(&y)
			okZ, _ := again.Next(&z)
			if okX != okY || x.Submit != y.Submit || x.GPUs != y.GPUs || x != z || okX != okZ {
				t.Fatalf("%+v, %+v, %+v", x, y, z)
			}
			if !okX {
				return
			}
			if y.Duration != time.Hour {
				t.Fatalf("a fixed hour is %s", y.Duration)
			}
		}
	})
}

func BenchmarkJobs(b *testing.B) {
	in := synthetic.Jobs{Seed: 1}.Open()
	var a workload.Arrival
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Next(&a); err != nil {
			b.Fatal(err)
		}
	}
}
