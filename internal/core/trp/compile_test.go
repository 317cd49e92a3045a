package trp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func TestCompileListsEveryProblem(t *testing.T) {
	run := []quantity.Amount{1, 2}
	many := trp.Profile{Form: trp.Envelope}
	for i := range int64(trp.MaxStretches + 1) {
		many.Curve = append(many.Curve, trp.Point{UpTo: i + 1, Amount: 1})
	}
	for _, c := range []struct {
		name         string
		p            trp.Profile
		total, theta int64
		want         []string
	}{
		{"no form", trp.Profile{}, 0, 0, []string{"theta is 0", "total is 0", "form 0 is not known"}},
		{"theta too large", phases([3]float64{1, 1, 0}), 1, 500_001, []string{"theta is 500001"}},
		{"no phases", trp.Profile{Form: trp.Phases}, 5, 1, []string{"phases: none given"}},
		{"phases", trp.Profile{Form: trp.Phases, Combine: 9, Phases: []trp.Phase{{UpTo: 5, Mean: -1}, {UpTo: 5, SD: trp.MaxAmount + 1},
			{UpTo: 8}}}, 9, 1,
			[]string{"combine 9", "phases[0]: the mean is -1", "phases[1]: ends before unit 5, where it starts at 5",
				"phases[1]: the deviation", "phases[2]: the last one ends before unit 8; want the job's total, 9"}},
		{"envelope", trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 0, Amount: -7}}}, 4, 1,
			[]string{"envelope[0]: ends before unit 0", "want the job's total, 4", "envelope[0]: the amount is -7"}},
		{"too many stretches", many, trp.MaxStretches + 1, 1, []string{"65 given; want at most 64"}},
		{"ensemble", trp.Profile{Form: trp.Ensemble, Bounds: []int64{3, 6}, Runs: [][]quantity.Amount{run, {1}, {1, -2}}}, 6, theta01,
			[]string{"runs[1]: has 1 peaks; want 2", "runs[2][1] is -2", "3 recorded; theta of 10000 parts per million needs at least " +
				"299 clean runs"}},
		{"hopeless theta", trp.Profile{Form: trp.Ensemble, Bounds: []int64{1}, Runs: [][]quantity.Amount{{1}}}, 1, 100,
			[]string{"needs 29956 recorded runs and at most 4096 are taken; give phases or an envelope"}},
		{"too many runs", trp.Profile{Form: trp.Ensemble, Bounds: []int64{1}, Runs: make([][]quantity.Amount, trp.MaxRuns+1)}, 1, theta01,
			[]string{"keep the latest"}},
		{"a flood", trp.Profile{Form: trp.Envelope, Curve: make([]trp.Point, 200)}, 1, 1, append(slices.Repeat([]string{"must rise"}, 63),
			"200 given; want at most 64", "and 138 more")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trp.Compile(c.p, c.total, c.theta)
			if err == nil || errkind.Of(err) != errkind.Invalid {
				t.Fatalf("error %v of kind %v, want an invalid profile", err, errkind.Of(err))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("does not say %q:\n%v", want, err)
				}
			}
			if got := strings.Count(err.Error(), "\n") + 1; got != len(c.want) {
				t.Errorf("%d problems, want %d:\n%v", got, len(c.want), err)
			}
		})
	}
}

func TestEnvelopeTakesTheHighestPoint(t *testing.T) {
	p := trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{4, 10}, {6, 30}, {9, 20}}}
	table := compile(t, p, 9, theta01)
	for _, c := range []struct {
		from, to int64
		want     quantity.Amount
	}{{0, 4, 10}, {3, 5, 30}, {0, 9, 30}, {6, 9, 20}} {
		if got := table.LeastOver(c.from, c.to, 0); got != c.want {
			t.Errorf("[%d,%d) needs %d, want %d", c.from, c.to, got, c.want)
		}
		if trp.Excess(p, c.from, c.to, c.want) != 0 || trp.Excess(p, c.from, c.to, c.want-1) != 1 {
			t.Errorf("[%d,%d): the excess must step at %d", c.from, c.to, c.want)
		}
	}
}

// ensemble records n runs of two stretches: peaks 1000+i in the first and, in the other order, 2000+n-i in the second.
func ensemble(n int) trp.Profile {
	p := trp.Profile{Form: trp.Ensemble, Bounds: []int64{5, 10}}
	for i := range n {
		p.Runs = append(p.Runs, []quantity.Amount{quantity.Amount(1000 + i), quantity.Amount(2000 + n - i)})
	}
	return p
}

func TestEnsembleAllowsWhatTheBoundAllows(t *testing.T) {
	// 299 clean runs certify .01, one excess needs 473: so 472 runs still need their largest peak.
	for _, c := range []struct{ n, excesses int }{{299, 0}, {472, 0}, {473, 1}, {628, 2}} {
		p := ensemble(c.n)
		table := compile(t, p, 10, theta01)
		if got, want := table.LeastOver(0, 5, 0), quantity.Amount(1000+c.n-1-c.excesses); got != want {
			t.Errorf("%d runs: the first stretch needs %d, want %d", c.n, got, want)
		}
		if got, want := table.LeastOver(0, 10, 0), quantity.Amount(2000+c.n-c.excesses); got != want {
			t.Errorf("%d runs: both need %d, want %d", c.n, got, want)
		}
		least := table.LeastOver(0, 10, 0)
		if q := trp.Excess(p, 0, 10, least); q > .01 {
			t.Errorf("%d runs: the bound at the threshold is %v", c.n, q)
		}
		if q := trp.Excess(p, 0, 10, least-1); q <= .01 {
			t.Errorf("%d runs: the bound below the threshold is %v", c.n, q)
		}
	}
}

// Under a true profile no more than theta of the runs pass the threshold, up to three deviations of the count.
func TestMonteCarloExcessStaysWithinTheta(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	const draws = 40_000
	for _, how := range []trp.Combine{trp.Union, trp.Independent} {
		for _, theta := range []int64{50_000, 10_000} {
			p := phases([3]float64{1, 14, 1.5}, [3]float64{2, 15, 1.2}, [3]float64{3, 15.5, 1})
			p.Combine = how
			table := compile(t, p, 3, theta)
			least := table.LeastOver(0, 3, 0)
			passed := 0
			for range draws {
				peak := 0.0
				for _, ph := range p.Phases {
					peak = max(peak, float64(ph.Mean)+rng.NormFloat64()*float64(ph.SD))
				}
				if peak > float64(least) {
					passed++
				}
			}
			q := float64(theta) / 1e6
			if rate, line := float64(passed)/draws, q+3*math.Sqrt(q*(1-q)/draws); rate > line {
				t.Errorf("way %d: %v of the runs pass the threshold, want at most %v", how, rate, line)
			}
		}
	}
}

// Ensembles are drawn from peaks uniform on [0, 1e6): at most 5% of them certify a capacity that is passed more often
// than theta.
func TestEnsemblesKeepTheirConfidence(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	const ensembles, runs, top, theta = 2000, 100, 1_000_000, 50_000
	wrong := 0
	for range ensembles {
		p := trp.Profile{Form: trp.Ensemble, Bounds: []int64{1}}
		for range runs {
			p.Runs = append(p.Runs, []quantity.Amount{quantity.Amount(rng.Int64N(top))})
		}
		table := compile(t, p, 1, theta)
		if least := table.Peak(0); float64(top-least)/top > .05 {
			wrong++
		}
	}
	if rate, line := float64(wrong)/ensembles, .05+3*math.Sqrt(.05*.95/ensembles); rate > line {
		t.Errorf("%v of the ensembles certify too little, want at most %v", rate, line)
	}
	if wrong == 0 {
		t.Error("no ensemble certifies too little: the bound is not the one we name")
	}
}

func TestVectors(t *testing.T) {
	small, large := trp.Vector{trp.Memory: 5}, trp.Vector{trp.Memory: 9}
	if !small.Fits(large) || large.Fits(small) || !small.Fits(small) {
		t.Error("Fits must hold up to and with the capacity")
	}
	if small.Max(large) != large || large.Max(small) != large {
		t.Error("Max must take the larger")
	}
}
