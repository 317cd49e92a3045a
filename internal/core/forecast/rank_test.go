package forecast_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/prng"
)

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		n     int
		theta int64
		k     int
		ok    bool
	}{
		{0, 10_000, 1, false}, {1, 500_000, 1, true}, {1, 499_999, 2, false}, {9, 100_000, 9, true}, {8, 100_000, 9, false},
		{10, 100_000, 10, true}, {19, 100_000, 18, true}, {98, 10_000, 99, false}, {99, 10_000, 99, true}, {100, 10_000, 100, true},
		{199, 10_000, 198, true}, {256, 10_000, 255, true}, {256, 1, 257, false},
	} {
		if k, ok := forecast.Rank(c.n, c.theta); k != c.k || ok != c.ok {
			t.Errorf("%d observations at %d: rank %d, %v; want %d, %v", c.n, c.theta, k, ok, c.k, c.ok)
		}
	}
}

// TestTheLeastRunsAreJustEnough: one less has no finite bound.
func TestTheLeastRunsAreJustEnough(t *testing.T) {
	for theta, want := range map[int64]int{10_000: 99, 50_000: 19, 500_000: 1, 300_000: 3, 1: 999_999} {
		n := forecast.LeastRuns(theta)
		_, enough := forecast.Rank(n, theta)
		_, less := forecast.Rank(n-1, theta)
		if n != want || !enough || less {
			t.Errorf("theta %d: %d runs (%v), one less %v; want %d", theta, n, enough, less, want)
		}
	}
}

// TestASampleIsItsNewest holds a sample against a plain list.
func TestASampleIsItsNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 12).Draw(t, "most")
		s := forecast.Sample{Most: most}
		var all []int64
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			x := rapid.Int64Range(-5, 5).Draw(t, "x")
			s.Add(x)
			all = append(all, x)
			kept := slices.Sorted(slices.Values(all[max(0, len(all)-most):]))
			theta := rapid.Int64Range(1, forecast.One-1).Draw(t, "theta")
			got, ok := s.Upper(theta)
			k, finite := forecast.Rank(len(kept), theta)
			if want := kept[min(k, len(kept))-1]; got != want || ok != finite || s.Len() != len(kept) {
				t.Fatalf("of %v at %d: %d, %v; want %d, %v", kept, theta, got, ok, want, finite)
			}
		}
	})
	if bound, ok := new(forecast.Sample).Upper(10_000); ok || bound != 0 {
		t.Error("an empty sample knows a bound")
	}
}

// rates are the ways in which exchangeable observations may be distributed: smooth, heavy-tailed, with ties, in two heaps.
func draws() map[string]func(*prng.Stream) int64 {
	return map[string]func(*prng.Stream) int64{
		"uniform":     func(r *prng.Stream) int64 { return int64(r.IntN(1 << 40)) },
		"exponential": func(r *prng.Stream) int64 { return int64(1e9 * r.Exp()) },
		"heavy":       func(r *prng.Stream) int64 { return int64(1e6 / math.Sqrt(1-r.Float64())) },
		"ties":        func(r *prng.Stream) int64 { return int64(r.IntN(3)) },
		"two heaps": func(r *prng.Stream) int64 {
			if r.IntN(50) == 0 {
				return 40_000 + int64(r.IntN(100))
			}
			return 24_000 + int64(r.IntN(100))
		},
	}
}

// TestExchangeableObservationsAreCovered: the next one passes the bound with a chance of at most theta, up to three standard
// deviations of the count; and where nothing ties hardly less, so that the bound is no idle one.
func TestExchangeableObservationsAreCovered(t *testing.T) {
	const trials = 8000
	for name, draw := range draws() {
		for _, c := range []struct {
			n     int
			theta int64
		}{{19, 50_000}, {30, 100_000}, {99, 10_000}, {150, 20_000}} {
			rng := prng.New(5, prng.Name(name), uint64(c.n))
			missed := 0
			for range trials {
				var s forecast.Sample
				for range c.n {
					s.Add(draw(&rng))
				}
				bound, ok := s.Upper(c.theta)
				if !ok {
					t.Fatalf("%d observations are too few", c.n)
				}
				if draw(&rng) > bound {
					missed++
				}
			}
			theta := float64(c.theta) / forecast.One
			sigma := 3 * math.Sqrt(theta*(1-theta)/trials)
			k, _ := forecast.Rank(c.n, c.theta)
			exact := 1 - float64(k)/float64(c.n+1)
			rate := float64(missed) / trials
			if rate > theta+sigma || name != "ties" && name != "two heaps" && rate < exact-sigma {
				t.Errorf("%s, %d observations: %.4f missed, want at most %.4f and about %.4f", name, c.n, rate, theta, exact)
			}
		}
	}
}
