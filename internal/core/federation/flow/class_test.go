package flow

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		amount          quantity.Amount
		demand, holds   Class
		demands, holder bool
	}{
		{0, 0, 0, true, false}, {1, 0, 0, true, false}, {10e9, 0, 0, true, true}, {10e9 + 1, 1, 0, true, true}, {20e9, 1, 1, true, true},
		{79e9, 4, 3, true, true}, {80e9, 4, 4, true, true}, {81e9, 0, 4, false, true},
	} {
		if got, ok := levels.Of(c.amount); got != c.demand || ok != c.demands {
			t.Errorf("a demand of %d is of class %d, %v", c.amount, got, ok)
		}
		if got, ok := levels.Holds(c.amount); got != c.holds || ok != c.holder {
			t.Errorf("a fragment of %d is of class %d, %v", c.amount, got, ok)
		}
	}
}

// TestAFragmentServesADemandIfItHoldsIt: never one that it does not hold.
func TestAFragmentServesADemandIfItHoldsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand, capacity := quantity.Amount(rapid.Int64Range(0, 80e9).Draw(t, "demand")),
			quantity.Amount(rapid.Int64Range(0, 90e9).Draw(t, "capacity"))
		c, _ := levels.Of(demand)
		f, ok := levels.Holds(capacity)
		if ok && f >= c && capacity < demand {
			t.Fatalf("a fragment of %d (class %d) is to serve %d (class %d)", capacity, f, demand, c)
		}
		if level := levels[c]; capacity >= level && (!ok || f < c) {
			t.Fatalf("a fragment of %d (class %d) does not serve class %d", capacity, f, c)
		}
	})
}

func someFragments(t *rapid.T, most int) (f Fragments) {
	for c := range levels {
		f[c] = uint8(rapid.IntRange(0, most).Draw(t, "fragments"))
	}
	return f
}

func TestHintsAreCountsRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := someFragments(t, 3)
		h := hintOf(&f)
		for c := range Class(MaxClasses) {
			n := 0
			for i := int(c); i < MaxClasses; i++ {
				n += int(f[i])
			}
			if want := min(n, 3); h.Level(c) != want || f.AtLeast(c) != n {
				t.Fatalf("%v: class %d has level %d and %d, want %d and %d", f, c, h.Level(c), f.AtLeast(c), min(n, 3), n)
			}
			if _, ok := f.Fit(c); ok != (n > 0) {
				t.Fatalf("%v: class %d fits: %v", f, c, ok)
			}
		}
	})
}

func TestExactHints(t *testing.T) {
	for _, c := range []struct {
		f    Fragments
		want []bool
	}{
		{Fragments{}, []bool{false, false, false}}, {Fragments{1}, []bool{true, false, false}},
		{Fragments{0, 1}, []bool{false, true, false}},
		{Fragments{1, 0, 1}, []bool{true, false, true}}, {Fragments{9, 2, 0}, []bool{true, true, false}},
		{Fragments{9, 3, 0}, []bool{false, true, false}},
		{Fragments{7: 5}, []bool{7: true}},
	} {
		for class, want := range c.want {
			if got := hintOf(&c.f).exact(Class(class)); got != want {
				t.Errorf("%v: class %d is there exactly: %v", c.f, class, got)
			}
		}
	}
}
