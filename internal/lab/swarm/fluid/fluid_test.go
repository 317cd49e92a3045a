package fluid

import (
	"math"
	"testing"
)

// plain is a zone of its own without rigid work and without patience.
func plain(slices int, load float64) Model {
	return Model{Zones: 1, Slices: slices, Load: load, Mean: 1, Age: .001, Pace: .02, Guesses: 1, ZoneHops: 8, Resplits: 2}
}

// erlangB is the share of calls that are lost, by its recursion.
func erlangB(servers int, offered float64) float64 {
	b := 1.
	for n := 1; n <= servers; n++ {
		b = offered * b / (float64(n) + offered*b)
	}
	return b
}

// TestErlang: zones drawn alike, without rigid work and patience, lose what Erlang's formula says, and use what is left.
func TestErlang(t *testing.T) {
	for _, x := range []struct {
		slices int
		load   float64
	}{{5, .6}, {20, .9}, {40, 1.2}} {
		m := plain(x.slices, x.load)
		m.Uniform = true
		got, offered := m.Solve(), x.load*float64(x.slices)
		b := erlangB(x.slices, offered)
		if math.Abs(1-got.Placed-b) > 1e-3 || math.Abs(got.Use-x.load*(1-b)) > 2e-3 || math.Abs(got.Full-b) > 1e-3 {
			t.Errorf("%d slices at load %.1f: %+v; Erlang loses %.4f", x.slices, x.load, got, b)
		}
	}
}

// TestFreshDigests: with digests of no age a zone takes in tickets in proportion to what is free, at least as if one were, and the
// chance of each state is a product of such rates.
func TestFreshDigests(t *testing.T) {
	m := plain(20, .9)
	got := m.Solve()
	// The same by hand: p(h) with p(h-1) (c-h+1)/m = p(h) A max(1, h), and A so that E[A max(1, h)] = arrivals.
	arrivals := .9 * 20.
	low, high := 1e-3, 1e3
	var full float64
	for range 100 {
		a := math.Sqrt(low * high)
		p, sum, rate, at0 := 1., 0., 0., 0.
		for h := 0; h <= 20; h++ {
			if h > 0 {
				p *= (20 - float64(h) + 1) / (a * float64(max(1, h)))
			}
			w := a * float64(max(1, h))
			sum, rate = sum+p, rate+p*w
			if h == 0 {
				at0 = p * w
			}
		}
		if full = at0 / rate; rate/sum < arrivals {
			low = a
		} else {
			high = a
		}
	}
	// The chain counts as passed what comes in the last period, so that a small one is exact up to its step.
	if math.Abs(got.Full-full) > .004 {
		t.Errorf("%.4f come to a full zone, by hand %.4f", got.Full, full)
	}
	m.Uniform = true
	if alike := m.Solve(); alike.Full < 1.3*got.Full {
		t.Errorf("%.4f come to a full zone where zones are drawn alike, %.4f by room; want more by far", alike.Full, got.Full)
	}
}

// TestLimits: without load everybody lands with the first hop; the older the digests the more find no room; patience places more; and what
// is beyond capacity is lost.
func TestLimits(t *testing.T) {
	m := Usual(1000)
	if x := m.Solve(); x.Placed < .999 || x.Hops > 1.1 || math.Abs(x.Use-.9) > .002 {
		t.Errorf("with rigid work: %+v", x)
	}
	m.Slices, m.Share = 240, 0
	m.Load = .001
	if x := m.Solve(); x.Placed < 1-1e-6 || x.Hops > 1.002 || math.Abs(x.Use-.001) > 1e-4 {
		t.Errorf("without load: %+v", x)
	}
	m.Load = .9
	last := 0.
	for _, age := range []float64{.01, .1, 1} {
		m.Age = age
		x := m.Solve()
		if x.Full <= last || math.Abs(x.Use-.9) > .01 && age < 1 {
			t.Errorf("digests %v s old: %+v, and %.4f were full with younger ones", age, x, last)
		}
		last = x.Full
	}
	m.Age, m.Load, m.Long = .1, 1.2, 0
	patient := m.Solve()
	m.Patience = .1
	if hasty := m.Solve(); patient.Placed < hasty.Placed || math.Abs(patient.Placed-1/1.2) > .01 || patient.Use < .99 {
		t.Errorf("at load 1.2: %+v with a patience of 1 s, %+v with .1", patient, hasty)
	}
}

// TestWhoGivesUp: nobody as long as all are served in time, and without patience everybody.
func TestWhoGivesUp(t *testing.T) {
	if x := giveUp(99, 100, 1); x != 0 {
		t.Errorf("%v give up", x)
	}
	if x := giveUp(10, 100, 0); x < 10 {
		t.Errorf("%v give up", x)
	}
	if sum := gauss5(2); math.Abs(sum[0].weight*2*sum[0].at*sum[0].at+sum[1].weight*2*sum[1].at*sum[1].at-4) > 1e-9 {
		t.Errorf("the variance of %v is not 4", sum)
	}
}
