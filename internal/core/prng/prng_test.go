package prng_test

import (
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/prng"
)

// TestVector: the first outputs of SplitMix64 from state 0, as published with the generator.
func TestVector(t *testing.T) {
	var s prng.Stream
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := s.Uint64(); got != want {
			t.Errorf("draw %d is %x, want %x", i, got, want)
		}
	}
}

func TestKeysSeparateStreams(t *testing.T) {
	a, b, c := prng.New(1, 2), prng.New(2, 1), prng.New(1, 2)
	x, y, z := a.Uint64(), b.Uint64(), c.Uint64()
	if x != z || x == y {
		t.Errorf("streams of (1,2), (2,1), (1,2) begin %x, %x, %x", x, y, z)
	}
	if prng.Name("a") == prng.Name("b") || prng.Name("") == prng.Name("a") {
		t.Error("names share a key")
	}
}

// TestMoments holds each distribution to its mean and deviation within five standard errors.
func TestMoments(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		name     string
		draw     func(*prng.Stream) float64
		mean, sd float64
	}{
		{"uniform", (*prng.Stream).Float64, 0.5, math.Sqrt(1.0 / 12)},
		{"exponential", (*prng.Stream).Exp, 1, 1},
		{"normal", (*prng.Stream).Normal, 0, 1},
		{"below 10", func(s *prng.Stream) float64 { return float64(s.IntN(10)) }, 4.5, math.Sqrt(99.0 / 12)},
	} {
		s := prng.New(7, prng.Name(c.name))
		sum, squares := 0.0, 0.0
		for range n {
			x := c.draw(&s)
			sum += x
			squares += x * x
		}
		mean := sum / n
		sd := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-c.mean) > 5*c.sd/math.Sqrt(n) || math.Abs(sd/c.sd-1) > 0.02 {
			t.Errorf("%s: mean %v, deviation %v, want %v and %v", c.name, mean, sd, c.mean, c.sd)
		}
	}
}

func TestShuffleIsUniform(t *testing.T) {
	counts := map[[3]int]int{}
	s := prng.New(3)
	for range 60_000 {
		p := [3]int{0, 1, 2}
		s.Shuffle(3, func(i, j int) { p[i], p[j] = p[j], p[i] })
		counts[p]++
	}
	for p, n := range counts {
		if n < 9_500 || n > 10_500 {
			t.Errorf("%v came %d times of 60,000, want about 10,000", p, n)
		}
	}
	if len(counts) != 6 {
		t.Errorf("%d orders of 6", len(counts))
	}
}
