package joint_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const gib = quantity.Amount(1) << 30

func load(peaks ...trp.Peak) *joint.Load {
	var l joint.Load
	for _, p := range peaks {
		l.Add(p)
	}
	return &l
}

func limit(memory quantity.Amount, excess int64) *joint.Limit {
	l := joint.NewLimit(joint.Config{Memory: memory, Excess: excess})
	return &l
}

// The deviation of four peaks of 10 GiB and 1 GiB: 2 GiB if they are independent, 4 as one, sqrt(4 + 12 rho) between.
func TestVectors(t *testing.T) {
	four := load(trp.Peak{Mean: 10 * gib, Deviation: gib}, trp.Peak{Mean: 10 * gib, Deviation: gib},
		trp.Peak{Mean: 10 * gib, Deviation: gib}, trp.Peak{Mean: 10 * gib, Deviation: gib})
	exact := load(trp.Peak{Mean: 30 * gib}, trp.Peak{Mean: 14 * gib})
	mixed := load(trp.Peak{Mean: 3 * gib, Deviation: 3 * gib}, trp.Peak{Mean: 4 * gib, Deviation: 4 * gib})
	for _, c := range []struct {
		name               string
		load               *joint.Load
		correlation        int64
		deviation, need    float64 // in GiB
		excess, chanceAt44 int64
	}{
		{"independent", four, 0, 2, 44.652696, 10_000, 22_750},
		{"as one", four, 1000, 4, 49.305392, 10_000, 158_655},
		{"a quarter", four, 250, 2.645751, 46.154938, 10_000, 65_285},
		{"looser", four, 0, 2, 43.289707, 50_000, 22_750},
		{"without deviation", exact, 1000, 0, 44, 10_000, 0},
		{"3, 4 and 5", mixed, 0, 5, 18.631740, 10_000, 0},
		{"3 and 4 as one", mixed, 1000, 7, 23.284436, 10_000, 0},
		{"none", load(), 1000, 0, 0, 10_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := limit(44*gib, c.excess)
			if got := float64(c.load.Deviation(c.correlation)) / float64(gib); math.Abs(got-c.deviation) > 1e-6 {
				t.Errorf("deviation %f GiB, want %f", got, c.deviation)
			}
			need := l.Need(c.load, c.correlation)
			if got := float64(need) / float64(gib); math.Abs(got-c.need) > 2e-6 {
				t.Errorf("needs %f GiB, want %f", got, c.need)
			}
			if got, want := l.Spare(c.load, c.correlation), max(0, 44*gib-need); got != want {
				t.Errorf("spares %d, want %d", got, want)
			}
			if got := l.Chance(c.load, c.correlation); got != c.chanceAt44 {
				t.Errorf("runs out with %d ppm, want %d", got, c.chanceAt44)
			}
		})
	}
}

func TestARefusalSaysItsNumbers(t *testing.T) {
	l := limit(44*gib, 10_000)
	four := load(trp.Peak{Mean: 10 * gib, Deviation: gib}, trp.Peak{Mean: 10 * gib, Deviation: gib},
		trp.Peak{Mean: 10 * gib, Deviation: gib}, trp.Peak{Mean: 10 * gib, Deviation: gib})
	want := "the host's memory would run out with probability .02, at most .01 may: 4 pieces with 40960 MiB on average and a deviation " +
		"of 2048 MiB (correlation .000), there are 45056 MiB"
	if got := l.Explain(four, 0); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := limit(gib, 1).Explain(four, 1000); !strings.Contains(got, "probability 1, at most .000001 may") {
		t.Errorf("%q", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []joint.Config{
		{Memory: -1}, {Memory: trp.MaxAmount + 1}, {Excess: -1}, {Excess: 600_000}, {Correlation: 10}, {Given: true, Correlation: 1001},
		{Given: true, Correlation: -1},
	} {
		if err := c.WithDefaults().Validate(); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (joint.Config{}).WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
}

func drawPeak(t *rapid.T) trp.Peak {
	most := int64(1) << rapid.IntRange(1, 50).Draw(t, "bits")
	return trp.Peak{Mean: quantity.Amount(rapid.Int64Range(0, most).Draw(t, "mean")),
		Deviation: quantity.Amount(rapid.Int64Range(0, min(most, 1<<46)).Draw(t, "deviation"))}
}

// TestTheDeviationIsExact: it is the root that arithmetic without bounds finds, rounded up.
func TestTheDeviationIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l joint.Load
		squares, sum, mean := new(big.Int), new(big.Int), new(big.Int)
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			p := drawPeak(t)
			l.Add(p)
			d := big.NewInt(int64(p.Deviation))
			squares.Add(squares, new(big.Int).Mul(d, d))
			sum.Add(sum, d)
			mean.Add(mean, big.NewInt(int64(p.Mean)))
		}
		rho := rapid.Int64Range(0, joint.Whole).Draw(t, "correlation")
		v := new(big.Int).Mul(squares, big.NewInt(joint.Whole-rho))
		v.Add(v, new(big.Int).Mul(new(big.Int).Mul(sum, sum), big.NewInt(rho)))
		v.Add(v, big.NewInt(joint.Whole-1)).Div(v, big.NewInt(joint.Whole))
		root := new(big.Int).Sqrt(v)
		if new(big.Int).Mul(root, root).Cmp(v) < 0 {
			root.Add(root, big.NewInt(1))
		}
		if got := l.Deviation(rho); got != quantity.Amount(root.Int64()) {
			t.Fatalf("deviation %d, want %v", got, root)
		}
		if l.Mean != quantity.Amount(mean.Int64()) {
			t.Fatalf("mean %d, want %v", l.Mean, mean)
		}
	})
}

// TestSpareIsSound: a piece whose demand is no more than what is spare can be added, whatever of it is mean. So nobody asks for it and is
// refused.
func TestSpareIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l joint.Load
		for range rapid.IntRange(0, 12).Draw(t, "pieces") {
			l.Add(trp.Peak{Mean: quantity.Amount(rapid.Int64Range(0, 20).Draw(t, "mean")) * gib,
				Deviation: quantity.Amount(rapid.Int64Range(0, int64(4*gib)).Draw(t, "deviation"))})
		}
		excess := rapid.Int64Range(1, 200_000).Draw(t, "excess")
		lim, rho := limit(200*gib, excess), rapid.Int64Range(0, joint.Whole).Draw(t, "correlation")
		spare := lim.Spare(&l, rho)
		if spare == 0 {
			return
		}
		demand := quantity.Amount(rapid.Int64Range(1, int64(spare)).Draw(t, "demand"))
		theta := rapid.Int64Range(1, excess).Draw(t, "theta")
		deviation := quantity.Amount(rapid.Int64Range(0, int64(demand)*1_000_000/max(1, trp.Quantile(theta))).Draw(t, "of it deviation"))
		mean := demand - quantity.Amount(quantity.MulDiv(int64(deviation), trp.Quantile(theta), 1_000_000))
		l.Add(trp.Peak{Mean: max(0, mean), Deviation: deviation})
		if need := lim.Need(&l, rho); need > lim.Memory+4 { // each rounding is at most a byte
			t.Fatalf("with a piece of %d on %d spare it needs %d of %d", demand, spare, need, lim.Memory)
		}
	})
}

// TestMoreIsNeverLess: neither another piece nor a higher correlation makes the need smaller, and as one it is the sum of what each needs
// alone.
func TestMoreIsNeverLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l joint.Load
		lim := limit(gib, rapid.Int64Range(1, 400_000).Draw(t, "excess"))
		low, high := rapid.Int64Range(0, joint.Whole).Draw(t, "low"), int64(0)
		high = rapid.Int64Range(low, joint.Whole).Draw(t, "high")
		var before, alone quantity.Amount
		for range rapid.IntRange(1, 10).Draw(t, "pieces") {
			p := trp.Peak{Mean: quantity.Amount(rapid.Int64Range(0, int64(gib)).Draw(t, "mean")),
				Deviation: quantity.Amount(rapid.Int64Range(0, int64(gib)).Draw(t, "deviation"))}
			l.Add(p)
			alone += lim.Need(load(p), 0)
			if lim.Need(&l, low) < before || lim.Need(&l, high) < lim.Need(&l, low) {
				t.Fatalf("%d pieces need %d, %d with the higher correlation, and %d before the last", l.Pieces, lim.Need(&l, low),
					lim.Need(&l, high), before)
			}
			before = lim.Need(&l, low)
		}
		if as := lim.Need(&l, joint.Whole); as > alone || alone-as > quantity.Amount(l.Pieces) {
			t.Fatalf("as one they need %d, each alone %d", as, alone)
		}
	})
}

// TestTheChanceHolds: a load that needs just the memory passes it as often as is accepted, under the model, whatever the correlation.
func TestTheChanceHolds(t *testing.T) {
	const n = 200_000
	for _, rho := range []int64{0, 300, 1000} {
		r := rand.New(rand.NewPCG(1, uint64(rho)))
		var l joint.Load
		var peaks []trp.Peak
		for i := range 8 {
			p := trp.Peak{Mean: quantity.Amount(5+i) * gib, Deviation: gib * quantity.Amount(1+i%3) / 2}
			peaks = append(peaks, p)
			l.Add(p)
		}
		need, over := float64(limit(gib, 10_000).Need(&l, rho)), 0
		common, own := math.Sqrt(float64(rho)/joint.Whole), math.Sqrt(1-float64(rho)/joint.Whole)
		for range n {
			sum, all := 0.0, r.NormFloat64()
			for _, p := range peaks {
				sum += float64(p.Mean) + float64(p.Deviation)*(common*all+own*r.NormFloat64())
			}
			if sum > need {
				over++
			}
		}
		if rate := float64(over) / n; math.Abs(rate-.01) > 5*math.Sqrt(.01*.99/n) {
			t.Errorf("correlation %d: passed with %f, want .01", rho, rate)
		}
	}
}
