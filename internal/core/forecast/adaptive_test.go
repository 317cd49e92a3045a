package forecast_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestALevelKeepsItsBoundAgainstAnAdversary: whatever is missed, chosen after seeing the level, the rate is as proved.
func TestALevelKeepsItsBoundAgainstAnAdversary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := forecast.Level{Theta: rapid.Int64Range(1, 500_000).Draw(t, "theta"), Gamma: rapid.Int64Range(1000, 900_000).Draw(t, "gamma")}
		rng := prng.New(rapid.Uint64().Draw(t, "seed"))
		greed := rapid.IntRange(0, 4).Draw(t, "greed")
		misses, n := 0, rapid.IntRange(1, 3000).Draw(t, "n")
		for range n {
			missed := l.Nothing() || !l.Whole() && (greed == 4 || rng.IntN(4) < greed || greed == 0 && l.At() < l.Theta)
			if l.Saw(missed); missed {
				misses++
			}
			if l.Moved+l.Theta*forecast.One <= -l.Gamma*forecast.One ||
				l.Moved+l.Theta*forecast.One >= (forecast.One+l.Gamma)*forecast.One {
				t.Fatalf("the level has left its range: %+v", l)
			}
		}
		theta, gamma := float64(l.Theta)/forecast.One, float64(l.Gamma)/forecast.One
		if off, most := math.Abs(float64(misses)/float64(n)-theta), (max(theta, 1-theta)+gamma)/(gamma*float64(n)); off > most+1e-12 {
			t.Fatalf("%d of %d missed: %v from theta, proved %v", misses, n, off, most)
		}
	})
}

// TestALevelFollowsADrift: a series whose steps are ever larger passes every fixed quantile of its past; the level learns to
// ask for the whole slice just so often that theta is kept.
func TestALevelFollowsADrift(t *testing.T) {
	const n, theta = 20_000, 20_000
	rng := prng.New(7)
	l, s := forecast.Level{Theta: theta, Gamma: 10_000}, forecast.Sample{Most: 100}
	misses, plain, whole := 0, 0, 0
	for i := range n {
		x := int64(math.Pow(1.002, float64(i%3000)) * 1000 * (1 + .1*rng.Float64()))
		bound, ok := s.Upper(l.At())
		if !ok || l.Whole() {
			whole++
			bound = math.MaxInt64
		}
		if l.Saw(x > bound); x > bound {
			misses++
		}
		if fixed, sure := s.Upper(theta); sure && x > fixed {
			plain++
		}
		s.Add(x)
	}
	most := theta*n/forecast.One + int((1-.02+.01)/.01) + 1
	if misses > most || plain < 2*most || whole == n {
		t.Errorf("%d of %d missed, want at most %d; at a fixed level %d; the whole slice %d times", misses, n, most, plain, whole)
	}
}

// TestALevelWaitsForLateOutcomes: with outcomes that are known late the bound has room for those on their way, and needs it.
func TestALevelWaitsForLateOutcomes(t *testing.T) {
	const n, late = 4000, 50
	l := forecast.Level{Theta: 100_000, Gamma: 20_000}
	var waiting []bool
	misses, lowest := 0, int64(0)
	for range n {
		missed := !l.Whole()
		if missed {
			misses++
		}
		if waiting = append(waiting, missed); len(waiting) > late {
			l.Saw(waiting[0])
			waiting = waiting[1:]
		}
		lowest = min(lowest, l.Moved+l.Theta*forecast.One)
	}
	for _, missed := range waiting {
		l.Saw(missed)
	}
	if off, most := math.Abs(float64(misses)/n-.1), (.9+(late+1)*.02)/(.02*n); off > most {
		t.Errorf("%d of %d missed: %v from theta, proved %v", misses, n, off, most)
	}
	if lowest >= -l.Gamma*forecast.One {
		t.Errorf("the level went down to %d: late outcomes took it no further than prompt ones", lowest)
	}
}

// TestSharesAreMeansOfOutcomes: a batch of equal outcomes is one of them; the mean over batches is kept.
func TestSharesAreMeansOfOutcomes(t *testing.T) {
	a, b := forecast.Level{Theta: 10_000, Gamma: 5000}, forecast.Level{Theta: 10_000, Gamma: 5000}
	for i := range int64(300) {
		a.Saw(i%7 == 0)
		share := int64(0)
		if i%7 == 0 {
			share = 12
		}
		b.SawShare(share, 12)
		if a != b {
			t.Fatalf("after %d: %+v, in batches %+v", i, a, b)
		}
	}
	l := forecast.Level{Theta: 50_000, Gamma: 20_000}
	sum := 0.0
	const n = 5000
	for i := range int64(n) {
		misses := (i * i) % 11
		if l.Whole() {
			misses = 0
		}
		l.SawShare(misses, 40)
		sum += float64(misses) / 40
	}
	if off, most := math.Abs(sum/n-.05), (.95+.02)/(.02*n)+1e-9; off > most {
		t.Errorf("the mean share is %v off, proved %v", off, most)
	}
}

// TestATrackerKeepsItsBoundAgainstAnAdversary: every observation is chosen with the bound in sight.
func TestATrackerKeepsItsBoundAgainstAnAdversary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := forecast.Tracker{
			Theta: rapid.Int64Range(1, 500_000).Draw(t, "theta"), Gamma: rapid.Int64Range(1000, 2_000_000).Draw(t, "gamma"),
			Max: rapid.Int64Range(1, 20).Draw(t, "max") * forecast.One,
		}
		tr.Start(rapid.Int64Range(0, tr.Max).Draw(t, "start"))
		rng := prng.New(rapid.Uint64().Draw(t, "seed"))
		how := rapid.IntRange(0, 3).Draw(t, "how")
		misses, n := 0, rapid.IntRange(1, 2000).Draw(t, "n")
		for range n {
			base := quantity.Amount(1 + rng.IntN(1_000_000))
			bound, ok := tr.Upper(base)
			most := quantity.Amount(int64(base) * (tr.Max / forecast.One))
			var x quantity.Amount
			switch {
			case how == 0: // never uses anything
			case how == 1 && ok && bound < most: // always just passes it
				x = bound + 1
			case how == 2:
				x = most
			default:
				x = quantity.Amount(rng.IntN(int(most) + 1))
			}
			if tr.Saw(x, bound, ok) {
				misses++
			}
		}
		theta, gamma := float64(tr.Theta)/forecast.One, float64(tr.Gamma)/forecast.One
		most := (float64(tr.Max)/forecast.One + gamma) / (gamma * float64(n))
		if off := math.Abs(float64(misses)/float64(n) - theta); off > most+1e-12 {
			t.Fatalf("%d of %d missed: %v from theta, proved %v", misses, n, off, most)
		}
	})
}

func TestATrackersSteps(t *testing.T) {
	tr := forecast.Tracker{Theta: 100_000, Gamma: 500_000, Max: 2 * forecast.One}
	tr.Start(forecast.One)
	for i, c := range []struct {
		observed, bound quantity.Amount
		ok, missed      bool
	}{{1000, 1000, true, false}, {951, 950, true, true}, {1400, 1400, true, false}, {1351, 1350, true, true}, {1801, 1800, true, true},
		{9999, math.MaxInt64, false, false}} {
		bound, ok := tr.Upper(1000)
		if missed := tr.Saw(c.observed, bound, ok); bound != c.bound || ok != c.ok || missed != c.missed {
			t.Errorf("step %d: bound %d, %v, missed %v; want %d, %v, %v", i, bound, ok, missed, c.bound, c.ok, c.missed)
		}
	}
}
