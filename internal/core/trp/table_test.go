package trp_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// drawPhases draws a profile of form A with small stretches, so that a brute force over units is cheap.
func drawPhases(t *rapid.T) (p trp.Profile, total int64) {
	p = trp.Profile{Form: trp.Phases, Combine: trp.Combine(rapid.IntRange(0, 2).Draw(t, "combine"))}
	for range rapid.IntRange(1, 6).Draw(t, "stretches") {
		total += rapid.Int64Range(1, 4).Draw(t, "length")
		ph := trp.Phase{UpTo: total, Mean: quantity.Amount(rapid.Int64Range(0, 30e9).Draw(t, "mean"))}
		if rapid.Bool().Draw(t, "spread") {
			ph.SD = quantity.Amount(rapid.Int64Range(1, 3e9).Draw(t, "sd"))
		}
		p.Phases = append(p.Phases, ph)
	}
	return p, total
}

// naive is the plain evaluation of form A, written apart from the package's own.
func naive(p trp.Profile, from, to int64, capacity quantity.Amount) float64 {
	sum, stay, top, begin := 0.0, 1.0, 0.0, int64(0)
	for _, ph := range p.Phases {
		if begin < to && from < ph.UpTo {
			q := 0.0
			switch {
			case ph.SD > 0:
				q = .5 * math.Erfc((float64(capacity)-float64(ph.Mean))/(float64(ph.SD)*math.Sqrt2))
			case capacity < ph.Mean:
				q = 1
			}
			sum, stay, top = sum+q, stay*(1-q), max(top, q)
		}
		begin = ph.UpTo
	}
	switch p.Combine {
	case trp.Independent:
		return 1 - stay
	case trp.Maximum:
		return top
	default:
		return min(sum, 1)
	}
}

func TestThresholdsDecideAsThePlainEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total := drawPhases(t)
		ppm := rapid.Int64Range(1, trp.MaxThetaPPM).Draw(t, "ppm")
		theta := float64(ppm) / 1e6
		table, err := trp.Compile(p, total, ppm)
		if err != nil {
			t.Fatal(err)
		}
		for from := range total {
			for to := from + 1; to <= total; to++ {
				capacity := quantity.Amount(rapid.Int64Range(0, 40e9).Draw(t, "capacity"))
				least := table.LeastOver(from, to, 0)
				q := naive(p, from, to, capacity)
				if math.Abs(q-theta) < 1e-12 {
					continue // the two ways round differently
				}
				if safe := q <= theta; safe != (capacity >= least) {
					t.Fatalf("[%d,%d) on %d: excess %v against theta %v, but least is %d", from, to, capacity, q, theta, least)
				}
				if got := trp.Excess(p, from, to, least); got > theta {
					t.Fatalf("[%d,%d): excess %v at the threshold is above %v", from, to, got, theta)
				}
			}
		}
	})
}

func TestWaysToCombineAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total := drawPhases(t)
		capacity := quantity.Amount(rapid.Int64Range(0, 40e9).Draw(t, "capacity"))
		var q [3]float64
		var least [3]trp.Table
		for _, how := range []trp.Combine{trp.Union, trp.Independent, trp.Maximum} {
			p.Combine = how
			q[how] = trp.Excess(p, 0, total, capacity)
			table, err := trp.Compile(p, total, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			least[how] = table
		}
		if q[trp.Union] < q[trp.Independent] || q[trp.Independent] < q[trp.Maximum] {
			t.Fatalf("excess %v: want union >= independent >= maximum", q)
		}
		for i := range least[0].Least {
			for j := range least[0].Least[i] {
				u, n, m := least[trp.Union].Least[i][j], least[trp.Independent].Least[i][j], least[trp.Maximum].Least[i][j]
				if u < n || n < m {
					t.Fatalf("thresholds %d, %d, %d: want union >= independent >= maximum", u, n, m)
				}
			}
		}
	})
}

func TestLeastNeverFallsAsAPieceGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total := drawPhases(t)
		table, err := trp.Compile(p, total, rapid.Int64Range(1, trp.MaxThetaPPM).Draw(t, "ppm"))
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range table.Least {
			for k := range row {
				if k > 0 && (row[k] < row[k-1] || row[k] < table.Least[i+1][k-1]) {
					t.Fatalf("Least[%d] = %v and below it %v: a longer piece needs less", i, row, table.Least[i+1])
				}
			}
		}
	})
}

func TestQuestionsAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, total := drawPhases(t)
		table, err := trp.Compile(p, total, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		scale := rapid.SampledFrom([]int64{0, 1000, 1001, 1250, 2000}).Draw(t, "scale")
		capacity := quantity.Amount(rapid.Int64Range(0, 40e9).Draw(t, "capacity"))
		from := rapid.Int64Range(0, total+1).Draw(t, "from")
		limit := rapid.Int64Range(0, total+2).Draw(t, "limit")
		end := min(limit, total)
		safe := func(a, b int64) bool {
			least := int64(table.LeastOver(a, b, 0))
			if scale != 0 {
				least = (least*scale + 999) / 1000
			}
			return quantity.Amount(least) <= capacity
		}
		reach := from
		for reach < end && safe(from, reach+1) {
			reach++
		}
		if got := table.Reach(from, capacity, limit, scale); got != reach {
			t.Fatalf("Reach(%d, limit %d) = %d, want %d", from, limit, got, reach)
		}
		next := from
		for next < end && !safe(next, next+1) {
			next++
		}
		next = min(next, end)
		if got := table.NextSafe(from, limit, capacity, scale); got != next {
			t.Fatalf("NextSafe(%d, limit %d) = %d, want %d", from, limit, got, next)
		}
		var peak quantity.Amount
		for x := range total {
			peak = max(peak, table.LeastOver(x, x+1, scale))
		}
		if got := table.Peak(scale); got != peak {
			t.Fatalf("Peak = %d, want %d", got, peak)
		}
	})
}

func TestEdgesOfATable(t *testing.T) {
	table := compile(t, phases([3]float64{10, 4, 0}, [3]float64{20, 8, 0}), 20, theta01)
	if got := table.LeastOver(5, 5, 0); got != 0 {
		t.Errorf("an empty piece needs %d", got)
	}
	if got := table.LeastOver(15, 99, 0); got != gb(8) {
		t.Errorf("a piece that ends past the total needs %d", got)
	}
	if got := table.LeastOver(20, 30, 0); got != 0 {
		t.Errorf("units past the total need %d", got)
	}
	if got := table.LeastOver(0, 10, 1500); got != gb(6) {
		t.Errorf("scaled by 1.5: %d, want 6 GB", got)
	}
	if got := table.Reach(20, gb(80), 40, 0); got != 20 {
		t.Errorf("nothing is left, but Reach is %d", got)
	}
	if got := table.Reach(0, gb(4)-1, 20, 0); got != 0 {
		t.Errorf("one byte short reaches %d", got)
	}
	var none trp.Table
	if none.Total() != 0 || none.LeastOver(0, 5, 0) != 0 || none.Reach(0, 9, 5, 0) != 0 || none.NextSafe(0, 5, 9, 0) != 0 ||
		none.Peak(0) != 0 {
		t.Error("the zero table covers no unit and must answer so")
	}
}

func TestQuestionsAllocateNothing(t *testing.T) {
	table := compile(t, sja, 5400, theta01)
	if n := testing.AllocsPerRun(100, func() {
		_ = table.Reach(600, gb(18), 5400, 1100)
		_ = table.LeastOver(0, 5400, 1100)
		_ = table.NextSafe(600, 5400, gb(9), 1100)
		_ = table.Peak(1100)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkCompile64Phases(b *testing.B) {
	p := trp.Profile{Form: trp.Phases}
	for i := range int64(trp.MaxStretches) {
		p.Phases = append(p.Phases, trp.Phase{UpTo: i + 1, Mean: gb(float64(10 + i%7)), SD: gb(.5)})
	}
	for b.Loop() {
		if _, err := trp.Compile(p, trp.MaxStretches, theta01); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReach(b *testing.B) {
	table, err := trp.Compile(sja, 5400, theta01)
	if err != nil {
		b.Fatal(err)
	}
	capacities := []quantity.Amount{gb(7), gb(10), gb(18), gb(23), gb(40)}
	for i := 0; b.Loop(); i++ {
		_ = table.Reach(int64(i*37%5400), capacities[i%len(capacities)], 5400, 1000)
	}
}
