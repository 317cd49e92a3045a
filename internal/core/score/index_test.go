package score

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestIndexCountsOctaves: a feature of an index is its logarithm, never less for a greater one, and what is twice as great is an octave
// more.
func TestIndexCountsOctaves(t *testing.T) {
	for x, want := range map[int64]int64{-5: 0, 0: 0, 1: 0, 2: One / octaves, 1 << 45: One, math.MaxInt64: One,
		1 << 30: 30 * One / octaves} {
		if got := Index(x); got != want {
			t.Errorf("the feature of %d is %d, want %d", x, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(1, math.MaxInt64).Draw(t, "a") >> rapid.IntRange(0, 62).Draw(t, "by")
		b := rapid.Int64Range(a, math.MaxInt64).Draw(t, "b")
		if Index(a) > Index(b) {
			t.Fatalf("the feature of %d is %d, that of %d is %d", a, Index(a), b, Index(b))
		}
		if a == 0 {
			return
		}
		if got, want := float64(log2(uint64(a)))/(1<<fraction), math.Log2(float64(a)); math.Abs(got-want) > 2e-6 {
			t.Fatalf("the logarithm of %d is %v, want %v", a, got, want)
		}
		x := rapid.Uint64Range(0, 61<<fraction).Draw(t, "x")
		if got, want := float64(exp2(x)), math.Exp2(float64(x)/(1<<fraction)); math.Abs(got-want) > 1+want*1e-12 {
			t.Fatalf("2 to the power of %v is %v, want %v", float64(x)/(1<<fraction), got, want)
		}
	})
}

// drawRates draws weights of which an index is one.
func drawRates(t *rapid.T) Weights {
	s := System{Index: rapid.Int64Range(1, One).Draw(t, "index")}
	s.Brevity = rapid.Int64Range(0, One-s.Index).Draw(t, "brevity")
	s.Share = One - s.Index - s.Brevity
	return Weights{Lambda: rapid.Int64Range(0, One-1).Draw(t, "lambda"), System: s}
}

// TestNoRateIsAboveTheBound: whatever a job declares and has had, its rate is at most what its index allows; a greater index has no
// smaller rate, nor bound; and under the index alone the rate is the index.
func TestNoRateIsAboveTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawRates(t)
		x := rapid.Int64Range(0, math.MaxInt64).Draw(t, "x") >> rapid.IntRange(0, 62).Draw(t, "by")
		more := x + rapid.Int64Range(0, math.MaxInt64-x).Draw(t, "more")
		own, first := rapid.Int64Range(0, One).Draw(t, "job"), rapid.Int64Range(32, 32<<10).Draw(t, "precedence")
		f := System{Brevity: rapid.Int64Range(0, One).Draw(t, "brief"), Share: rapid.Int64Range(0, One).Draw(t, "had"), Index: Index(x)}
		rate := w.Rate(own, f.Sum(w.System), x, first)
		if most := w.MostRate(x, first); rate < 1 || rate > most || most > w.MostRate(more, first) {
			t.Fatalf("a rate of %d, at most %d, with more %d", rate, most, w.MostRate(more, first))
		}
		f.Index = Index(more)
		if better := w.Rate(own, f.Sum(w.System), more, first); better < rate {
			t.Fatalf("an index of %d has the rate %d, one of %d %d", x, rate, more, better)
		}
		alone := Weights{System: System{Index: One}}
		if got := alone.Rate(own, f.Sum(alone.System), more, first); got != max(1, min(more, MaxWeight)) {
			t.Fatalf("the rate of %d alone is %d", more, got)
		}
	})
}

func TestWorth(t *testing.T) {
	const hour = 3_600_000
	for _, c := range []struct {
		name             string
		rate, run, lease int64
		ends             bool
		want             int64
	}{
		{"nine tenths of the lease is run", 1000, 90, 100, false, 900},
		{"twice as long is worth as much in a millisecond", 1000, 180, 200, false, 900},
		{"where the window ends it is worth twice", 1000, hour, 2 * hour, true, 1000},
		{"by its run", 1000, 2 * hour, 2 * hour, true, 2000},
		{"nobody knows how long it runs", 1000, 0, 50, false, 1000},
		{"worth something at least", 1, 1, hour, true, 1},
		{"and what can be added up at most", MaxWeight, 100 * hour, 100 * hour, true, MaxWeight},
	} {
		if got := Worth(c.rate, c.run, c.lease, c.ends); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestWeightsAreCompletedByTheObjective: what is left out is that of the objective, and no more.
func TestWeightsAreCompletedByTheObjective(t *testing.T) {
	usual, own := Weights{Lambda: 300_000, System: System{Age: One}}, System{Share: One}
	for _, c := range []struct{ given, want Weights }{
		{Weights{}, usual},
		{Weights{Lambda: Usual, System: own}, Weights{Lambda: 300_000, System: own}},
		{Weights{Lambda: None}, Weights{System: System{Age: One}}},
		{Weights{Lambda: 5}, Weights{Lambda: 5, System: System{Age: One}}},
		{Weights{System: own}, Weights{System: own}},
	} {
		if got := c.given.Or(usual); got != c.want {
			t.Errorf("%+v is completed to %+v, want %+v", c.given, got, c.want)
		}
	}
	for _, name := range []string{"shortest", "fair", "deadline", "throughput", "fifo"} {
		if err := Of(name).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
