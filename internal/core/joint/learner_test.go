package joint_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

var ten = trp.Peak{Mean: 10 * gib, Deviation: gib}

func TestWhatIsLearnedOfPairs(t *testing.T) {
	type run struct {
		from, to quantity.Instant
		peak     quantity.Amount
	}
	for _, c := range []struct {
		name  string
		runs  []run
		pairs int64
		want  int64
	}{
		{"nothing", nil, 0, 1000},
		{"one alone", []run{{0, 10, 11 * gib}}, 0, 1000},
		{"two that did not run together", []run{{0, 10, 11 * gib}, {10, 20, 11 * gib}}, 0, 1000},
		{"two on the same side: no more than all", []run{{0, 10, 11 * gib}, {5, 20, 11 * gib}}, 1, 1000},
		{"one that foresaw nothing", []run{{0, 10, 0}, {5, 20, 11 * gib}}, 0, 1000},
		// Of sixteen pairs half are +1, half -1: 0, and twice a quarter.
		{"sides that differ", func() (all []run) {
			for i := range quantity.Instant(16) {
				all = append(all, run{10 * i, 10*i + 5, 11 * gib}, run{10 * i, 10*i + 5, (11 - 2*quantity.Amount(i%2)) * gib})
			}
			return all
		}(), 16, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l joint.Learner
			for _, r := range c.runs {
				l.Observe(r.from, r.to, ten, r.peak)
			}
			if l.Pairs() != c.pairs || l.Correlation() != c.want {
				t.Errorf("%d pairs and %d, want %d and %d", l.Pairs(), l.Correlation(), c.pairs, c.want)
			}
		})
	}
}

// TestTheTrueCorrelationIsFound: with enough pairs the estimate is above what is true, and not by much more than its bound.
func TestTheTrueCorrelationIsFound(t *testing.T) {
	for _, c := range []struct{ rho, from, to float64 }{{0, 0, .2}, {.3, .3, .6}, {.8, .7, 1}} {
		r := rand.New(rand.NewPCG(7, uint64(100*c.rho)))
		var l joint.Learner
		common, own := math.Sqrt(c.rho), math.Sqrt(1-c.rho)
		for i := range quantity.Instant(2000) {
			all := r.NormFloat64()
			for range 4 {
				l.Observe(10*i, 10*i+5, ten, ten.Mean+quantity.Amount(float64(ten.Deviation)*(common*all+own*r.NormFloat64())))
			}
		}
		if got := float64(l.Correlation()) / joint.Whole; got < c.from || got > c.to {
			t.Errorf("correlation %v is taken for %v, want %v to %v", c.rho, got, c.from, c.to)
		}
	}
}

// TestAnyHistoryGivesACorrelation: whatever came, it is within bounds, and no byte overflows.
func TestAnyHistoryGivesACorrelation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l joint.Learner
		for range rapid.IntRange(0, 300).Draw(t, "runs") {
			from := quantity.Instant(rapid.Int64Range(0, 100).Draw(t, "from"))
			l.Observe(from, from+quantity.Instant(rapid.Int64Range(0, 50).Draw(t, "length")), drawPeak(t),
				quantity.Amount(rapid.Int64Range(0, int64(trp.MaxAmount)).Draw(t, "peak")))
			if c := l.Correlation(); c < 0 || c > joint.Whole {
				t.Fatalf("correlation %d", c)
			}
		}
	})
}
