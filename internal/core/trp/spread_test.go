package trp_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func spread(t testing.TB, p trp.Profile, total, theta, permille int64) trp.Table {
	t.Helper()
	table, err := trp.Spread(p, total, theta, permille)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// z of .01 is 2.326348: the deviations are multiplied, or taken in their place.
func TestSpreadMultipliesTheDeviations(t *testing.T) {
	for _, c := range []struct {
		name     string
		p        trp.Profile
		permille int64
		want     string // GB
	}{
		{"as declared", phases([3]float64{1, 14, 1.5}), 1000, "17.4895"},
		{"nothing learned yet", phases([3]float64{1, 14, 1.5}), 0, "17.4895"},
		{"half as much again", phases([3]float64{1, 14, 1.5}), 1500, "19.2343"},
		{"twice", phases([3]float64{1, 14, 1.5}), 2000, "20.9790"},
		{"exact, as declared", phases([3]float64{1, 20, 0}), 1000, "20.0000"},
		{"exact, not believed any more", phases([3]float64{1, 20, 0}), 1500, "21.3958"},
		{"next to exact", phases([3]float64{1, 20, .001}), 1500, "21.3958"},
		{"envelope", trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 1, Amount: gb(20)}}}, 1500, "21.0000"},
		{"envelope, twice", trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 1, Amount: gb(20)}}}, 2000, "22.0000"},
		{"the widest", trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 1, Amount: gb(20)}}}, math.MaxInt64, "50.0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := spread(t, c.p, 1, theta01, c.permille)
			digits(t, "least GB", float64(table.Peak(0))/1e9, 4, c.want)
		})
	}
	recorded := ensemble(299) // the largest peak of the first stretch is 1298
	table := spread(t, recorded, 10, theta01, 2000)
	if got := table.LeastOver(0, 5, 0); got != 1428 {
		t.Errorf("recorded runs need %d, want a tenth more than 1298", got)
	}
	if recorded.Runs[298][0] != 1298 {
		t.Error("the profile itself was changed")
	}
}

func TestSpreadRefusesWhatCompileRefuses(t *testing.T) {
	bad := trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 5, Mean: -1}, {UpTo: 8, SD: -2}}}
	_, want := trp.Compile(bad, 9, 0)
	_, err := trp.Spread(bad, 9, 0, 1500)
	if err == nil || errkind.Of(err) != errkind.Invalid || err.Error() != want.Error() {
		t.Errorf("error %v, want %v", err, want)
	}
}

// drawAny draws a profile of any form, one that can be certified at theta.
func drawAny(t *rapid.T) (p trp.Profile, total, theta int64) {
	switch trp.Form(rapid.IntRange(int(trp.Phases), int(trp.Envelope)).Draw(t, "form")) {
	case trp.Phases:
		p, total = drawPhases(t)
		return p, total, rapid.Int64Range(1, trp.MaxThetaPPM).Draw(t, "ppm")
	case trp.Ensemble:
		p = trp.Profile{Form: trp.Ensemble, Bounds: []int64{2, 5}}
		for range rapid.IntRange(59, 100).Draw(t, "runs") {
			p.Runs = append(p.Runs, []quantity.Amount{quantity.Amount(rapid.Int64Range(0, 30e9).Draw(t, "peak")),
				quantity.Amount(rapid.Int64Range(0, int64(trp.MaxAmount)).Draw(t, "peak"))})
		}
		return p, 5, 50_000
	default:
		p = trp.Profile{Form: trp.Envelope}
		for range rapid.IntRange(1, 6).Draw(t, "points") {
			total += rapid.Int64Range(1, 4).Draw(t, "length")
			p.Curve = append(p.Curve, trp.Point{UpTo: total,
				Amount: quantity.Amount(rapid.Int64Range(0, int64(trp.MaxAmount)).Draw(t, "amount"))})
		}
		return p, total, theta01
	}
}

func TestLeastNeverFallsWithTheSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total, theta := drawAny(t)
		one := rapid.Int64Range(0, trp.MaxSpread+1000).Draw(t, "spread")
		other := rapid.Int64Range(one, trp.MaxSpread+1000).Draw(t, "wider")
		narrow, err := trp.Spread(p, total, theta, one)
		if err != nil {
			t.Fatal(err)
		}
		wide, err := trp.Spread(p, total, theta, other)
		if err != nil {
			t.Fatal(err)
		}
		for i := range narrow.Least {
			for k := range narrow.Least[i] {
				if narrow.Least[i][k] > wide.Least[i][k] {
					t.Fatalf("Least[%d][%d] is %d at spread %d and %d at %d", i, k, narrow.Least[i][k], one, wide.Least[i][k], other)
				}
			}
		}
		if plain, err := trp.Compile(p, total, theta); err != nil || one <= trp.Unscaled &&
			!slices.EqualFunc(plain.Least, narrow.Least, slices.Equal) {
			t.Fatalf("a spread of %d changes the profile (%v)", one, err)
		}
	})
}

// A job whose true deviations are wider than it declared breaks its promise; with the spread that makes good for it no more
// than theta of its runs pass, up to three deviations of the count.
func TestMonteCarloExcessStaysWithinThetaWithTheRightSpread(t *testing.T) {
	const draws = 40_000
	p := phases([3]float64{1, 14, 1.5}, [3]float64{2, 15, 1.2}, [3]float64{3, 15.5, 1})
	for _, c := range []struct {
		theta, truth, permille int64
		kept                   bool
	}{
		{10_000, 1000, 1000, true}, {50_000, 1000, 1000, true}, {10_000, 1000, 1500, true},
		{10_000, 1500, 1500, true}, {50_000, 1500, 1500, true}, {10_000, 2250, 2250, true},
		{10_000, 1500, 1000, false}, {50_000, 2250, 1500, false},
	} {
		table := spread(t, p, 3, c.theta, c.permille)
		least := float64(table.LeastOver(0, 3, 0))
		rng := prng.New(uint64(c.theta), uint64(c.truth), uint64(c.permille))
		passed := 0
		for range draws {
			peak := 0.0
			for _, ph := range p.Phases {
				peak = max(peak, float64(ph.Mean)+rng.Normal()*float64(ph.SD)*float64(c.truth)/1000)
			}
			if peak > least {
				passed++
			}
		}
		q := float64(c.theta) / 1e6
		rate, line := float64(passed)/draws, q+3*math.Sqrt(q*(1-q)/draws)
		if kept := rate <= line; kept != c.kept {
			t.Errorf("theta %v, true spread %d, taken %d: %v of the runs pass, against %v", q, c.truth, c.permille, rate, line)
		}
	}
}

// The chance of excess that is shown is that of the table in use.
func TestExcessOfAWidenedProfile(t *testing.T) {
	p := phases([3]float64{1, 14, 1.5}, [3]float64{2, 15, 0})
	table := spread(t, p, 2, theta01, 1500)
	least := table.LeastOver(0, 2, 0)
	w := trp.Widened(p, 1500)
	if at, below := trp.Excess(w, 0, 2, least), trp.Excess(w, 0, 2, least-1); at > .01 || below <= .01 {
		t.Errorf("excess %v at the threshold and %v below it; want the step at .01", at, below)
	}
}
