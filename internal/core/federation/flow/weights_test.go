package flow

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
)

func describe(v any) string { return fmt.Sprintf("%+v", v) }

func zoneDigest(alive bool, free, demand uint32, pressure uint16) Digest {
	d := Digest{Alive: alive, Pressure: pressure, Version: 1}
	d.Free[0], d.Demand[0] = free, demand
	return d
}

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		name               string
		alpha, beta, gamma int64
		d                  Digest
		want               uint64
	}{
		{"free fragments", 1000, 1000, 1000, zoneDigest(true, 7, 0, 0), 7_000_000},
		{"less what is asked for", 1000, 1000, 1000, zoneDigest(true, 7, 3, 0), 4_000_000},
		{"half of it", 1000, 1000, 500, zoneDigest(true, 7, 3, 0), 5_500_000},
		{"more asked for than there is", 1000, 1000, 1000, zoneDigest(true, 7, 9, 0), 1_000_000},
		{"pressure", 1000, 1000, 1000, zoneDigest(true, 7, 0, 250), 5_250_000},
		{"full pressure", 1000, 1000, 1000, zoneDigest(true, 7, 0, 1000), 0},
		{"beyond it", 1000, 1000, 1000, zoneDigest(true, 7, 0, 1200), 0},
		{"dead", 1000, 1000, 1000, zoneDigest(false, 7, 0, 0), 0},
		{"squared", 2000, 1000, 1000, zoneDigest(true, 7, 0, 500), 24_500_000},
		{"root of what is calm", 1000, 500, 1000, zoneDigest(true, 8, 0, 750), 4_000_000},
		{"no more than fits", 1000, 1000, 1000, zoneDigest(true, math.MaxUint32, 0, 0), maxBase * 1000},
		{"no more than fits, squared", 2000, 1000, 1000, zoneDigest(true, math.MaxUint32, 0, 0), 1 << 46},
		{"nothing", 8000, 1000, 1000, zoneDigest(true, 0, 0, 0), 1_000_000},
		{"never nothing at all", 8000, 8000, 1000, zoneDigest(true, 0, 0, 900), 1},
	} {
		cfg := Config{Classes: levels, Alpha: c.alpha, Beta: c.beta, Gamma: c.gamma}.WithDefaults()
		if got := cfg.weight(&c.d, 0); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSharesByHand(t *testing.T) {
	cfg := tested()
	for _, c := range []struct {
		name    string
		weights []uint64
		live    []bool
		want    []float64
	}{
		{"in proportion", []uint64{1, 3}, []bool{true, true}, []float64{.25, .75}},
		{"the dead get nothing", []uint64{5, 9, 5}, []bool{true, false, true}, []float64{.5, 0, .5}},
		{"a floor for the live", []uint64{0, 1000}, []bool{true, true}, []float64{.01, .99}},
		{"what is left goes by weight", []uint64{0, 300, 100, 0}, []bool{true, true, true, false}, []float64{.005, .74625, .24875, 0}},
		{"full pressure everywhere", []uint64{0, 0, 0, 0}, []bool{true, true, false, true}, []float64{1. / 3, 1. / 3, 0, 1. / 3}},
		{"one alone", []uint64{17}, []bool{true}, []float64{1}},
	} {
		if !cfg.shares(c.weights, c.live) {
			t.Errorf("%s: no zone", c.name)
		}
		for z, want := range c.want {
			if got := float64(c.weights[z]) / unit / float64(len(c.want)); math.Abs(got-want) > 1e-8 {
				t.Errorf("%s: zone %d has %v, want %v", c.name, z, got, want)
			}
		}
	}
	if cfg.shares([]uint64{3, 3}, []bool{false, false}) {
		t.Error("there is a zone among dead ones")
	}
}

// worldOfWeights draws weights and who is live, one of them at least.
func worldOfWeights(t *rapid.T) (weights []uint64, live []bool) {
	n := rapid.IntRange(1, 40).Draw(t, "zones")
	for i := range n {
		live = append(live, rapid.IntRange(0, 9).Draw(t, "live") > 0 || i == 0)
		w := rapid.Uint64Range(0, 1<<rapid.IntRange(0, 46).Draw(t, "magnitude")).Draw(t, "weight")
		if !live[i] {
			w = 0
		}
		weights = append(weights, w)
	}
	return weights, live
}

// TestSharesKeepTheFloorAndTheProportion: in rational numbers, every live zone has Floor/Z at least, all together 1, and any two that have
// more are in proportion.
func TestSharesKeepTheFloorAndTheProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Classes: levels, Floor: rapid.Int64Range(1, 500).Draw(t, "floor")}.WithDefaults()
		weights, live := worldOfWeights(t)
		shares := append([]uint64(nil), weights...)
		cfg.shares(shares, live)
		sum := uint64(0)
		floor := unit * uint64(cfg.Floor) / 1000
		most := 0
		for i, s := range shares {
			sum += s
			if live[i] != (s > 0) || live[i] && s < floor {
				t.Fatalf("zone %d (live %v) of weight %d has %d units, the floor is %d", i, live[i], weights[i], s, floor)
			}
			if s > shares[most] {
				most = i
			}
		}
		if sum != uint64(len(shares))*unit {
			t.Fatalf("shares sum to %d, not to %d", sum, uint64(len(shares))*unit)
		}
		for i, s := range shares {
			if s <= floor || weights[most] == 0 {
				continue
			}
			// s / shares[most] against weights[i] / weights[most], within what rounding may move: some units of 2^-32/Z.
			exact := new(big.Rat).Mul(big.NewRat(int64(shares[most]), 1), big.NewRat(int64(weights[i]), int64(weights[most])))
			off := new(big.Rat).Sub(exact, big.NewRat(int64(s), 1))
			if off.Abs(off).Cmp(big.NewRat(int64(2*len(shares)+2), 1)) > 0 {
				t.Fatalf("zone %d has %d units, in proportion it would have %s", i, s, exact.FloatString(2))
			}
		}
	})
}

// TestTheTableHasTheSharesItWasBuiltWith, exactly: which is finer than 20 bits.
func TestTheTableHasTheSharesItWasBuiltWith(t *testing.T) {
	var a Alias // used again and again, as digests come
	rapid.Check(t, func(t *rapid.T) {
		cfg := tested()
		weights, live := worldOfWeights(t)
		cfg.shares(weights, live)
		a.Build(append([]uint64(nil), weights...))
		for z, want := range weights {
			if got := a.Share(ZoneID(z)); got != want {
				t.Fatalf("zone %d is drawn with %d units, want %d", z, got, want)
			}
		}
	})
}

// TestDrawsAreAsExpected: chi-square of a million draws over fixed seeds, and no dead zone is ever drawn.
func TestDrawsAreAsExpected(t *testing.T) {
	const draws = 1_000_000
	for seed := range uint64(4) {
		cfg := checked(Config{Seed: seed, Classes: levels})
		source := prng.New(seed, prng.Name("digests"))
		s := NewSplitter(cfg, 50)
		for z := range ZoneID(50) {
			d := Digest{Zone: z, Version: 1, Alive: z%7 != 3, Pressure: uint16(source.IntN(900))}
			for c := range d.Free {
				d.Free[c], d.Demand[c] = uint32(source.IntN(200)), uint32(source.IntN(100))
			}
			s.Hear(start, &d)
		}
		s.Rebuild(start)
		var counts [50]float64
		for id := range uint64(draws) {
			tk := Ticket{ID: TicketID(id*0x9e3779b97f4a7c15 + seed), Class: 2}
			z, ok := s.Draw(&tk)
			if !ok {
				t.Fatal("nothing is drawn")
			}
			counts[z]++
		}
		chi, free := 0.0, -1
		for z, n := range counts {
			share := s.Share(2, ZoneID(z))
			if want := float64(share) / unit / 50 * draws; want > 0 {
				chi += (n - want) * (n - want) / want
				free++
			} else if n > 0 {
				t.Errorf("zone %d is dead and was drawn %v times", z, n)
			}
		}
		// Wilson and Hilferty: the cube root of chi/k is nearly normal; 4 deviations.
		k := float64(free)
		if z := (math.Cbrt(chi/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k)); math.Abs(z) > 4 {
			t.Errorf("seed %d: chi-square is %.1f of %d degrees of freedom, %.1f deviations", seed, chi, free, z)
		}
	}
}
