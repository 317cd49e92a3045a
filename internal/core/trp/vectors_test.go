package trp_test

import (
	"fmt"
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const theta01 = 10_000 // .01 in parts per million

// gb is a decimal gigabyte amount, exact to the byte.
func gb(x float64) quantity.Amount { return quantity.Amount(math.Round(x * 1e9)) }

// phases builds a profile of form A from (upTo, mu, sigma) triples, mu and sigma in GB.
func phases(triples ...[3]float64) trp.Profile {
	p := trp.Profile{Form: trp.Phases}
	for _, t := range triples {
		p.Phases = append(p.Phases, trp.Phase{UpTo: int64(t[0]), Mean: gb(t[1]), SD: gb(t[2])})
	}
	return p
}

func compile(t testing.TB, p trp.Profile, total, theta int64) trp.Table {
	t.Helper()
	table, err := trp.Compile(p, total, theta)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// digits compares a float with what a table prints.
func digits(t *testing.T, what string, got float64, n int, want string) {
	t.Helper()
	if s := fmt.Sprintf("%.*f", n, got); s != want {
		t.Errorf("%s = %s, want %s", what, s, want)
	}
}

// The job of our SJA test vector: warm-up, steady, burst, tail; a unit is a second.
var sja = phases([3]float64{600, 6, .3}, [3]float64{4200, 14, .8}, [3]float64{4500, 22, 1}, [3]float64{5400, 8, .4})

func TestMemorySideOfTheSJAVector(t *testing.T) {
	table := compile(t, sja, 5400, theta01)
	for _, c := range []struct {
		name     string
		capacity float64
		from     int64
		reach    int64
		next     float64 // excess of the first stretch
		digits   int
		want     string
	}{
		{"W1 stops at the 14 GB phase", 10, 0, 600, 0, 5, "0.00000"},
		{"W2 the window ends it, not memory", 18, 600, 4200, 0, 5, "0.00000"},
		{"W3", 14, 1740, 1740, 0, 1, "0.5"},
		{"W4 its length refuses it, not memory", 24, 1740, 4200, 0, 5, "0.00000"},
		{"W5 stops before the burst", 20, 1740, 4200, 0, 5, "0.00000"},
		{"W6", 24, 4200, 4200, 0, 5, "0.02275"},
		{"W7 finishes", 40, 4200, 5400, 0, 5, "0.00000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := table.Reach(c.from, gb(c.capacity), 5400, trp.Unscaled); got != c.reach {
				t.Errorf("reaches %d, want %d", got, c.reach)
			}
			digits(t, "excess of the first stretch", trp.Excess(sja, c.from, c.from+1, gb(c.capacity)), c.digits, c.want)
		})
	}
	digits(t, "the static peak in GB", float64(table.LeastOver(0, 5400, trp.Unscaled))/1e9, 1, "24.3")
	digits(t, "the largest single need in GB", float64(table.Peak(trp.Unscaled))/1e9, 1, "24.3")
}

func TestSafetyVectorsOfThePhases(t *testing.T) {
	p := phases([3]float64{1, 14, 1.5}, [3]float64{2, 15, 1.2}, [3]float64{3, 15.5, 1})
	for _, c := range []struct {
		how  trp.Combine
		want [3]string // at 17, 18 and 19 GB
	}{
		{trp.Union, [3]string{"0.137348", "0.016250", "0.001091"}},
		{trp.Independent, [3]string{"0.131620", "0.016164", "0.001090"}},
		{trp.Maximum, [3]string{"0.066807", "0.006210", "0.000429"}},
	} {
		p.Combine = c.how
		for i, want := range c.want {
			digits(t, fmt.Sprintf("way %d at %d GB", c.how, 17+i), trp.Excess(p, 0, 3, gb(float64(17+i))), 6, want)
		}
	}
}

func TestLeastCapacityVectors(t *testing.T) {
	p := phases([3]float64{1, 6, .5}, [3]float64{2, 14, 1}, [3]float64{3, 17, 1.2})
	for _, c := range []struct {
		theta int64
		want  string
	}{{50_000, "18.9738"}, {10_000, "19.7916"}, {1_000, "20.7083"}} {
		table := compile(t, p, 3, c.theta)
		digits(t, fmt.Sprintf("least GB at %d ppm", c.theta), float64(table.LeastOver(0, 3, trp.Unscaled))/1e9, 4, c.want)
	}
}

func TestClopperPearsonVectors(t *testing.T) {
	for _, c := range []struct {
		n, k int
		want string
	}{{100, 0, "0.029513"}, {100, 1, "0.046560"}, {300, 0, "0.009936"}, {300, 2, "0.020836"}, {1000, 5, "0.010484"}} {
		digits(t, fmt.Sprintf("upper bound of %d of %d", c.k, c.n), trp.UpperBound(c.n, c.k), 6, c.want)
	}
	for _, k := range []int{5, 9} {
		if got := trp.UpperBound(5, k); got != 1 {
			t.Errorf("upper bound of %d of 5 = %v, want 1", k, got)
		}
	}
	if got := trp.UpperBound(0, 0); got != 1 {
		t.Errorf("upper bound without trials = %v, want 1", got)
	}
}

func TestLeastCleanRuns(t *testing.T) {
	for _, c := range []struct {
		theta int64
		want  int
	}{{10_000, 299}, {50_000, 59}, {1_000, 2995}, {500_000, 5}, {1, 2995731}} {
		if got := trp.LeastCleanRuns(c.theta); got != c.want {
			t.Errorf("least clean runs for %d ppm = %d, want %d", c.theta, got, c.want)
		}
	}
}
