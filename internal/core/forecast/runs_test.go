package forecast_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestATrailTouchesWhatAPieceTouches, unit by unit: a stretch is touched if a unit of the piece overlaps it.
func TestATrailTouchesWhatAPieceTouches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "stretches")
		total := rapid.Int64Range(1, 30).Draw(t, "total")
		from := rapid.Int64Range(-2, total).Draw(t, "from")
		to := rapid.Int64Range(from, total+3).Draw(t, "to")
		trail := forecast.Trail{Total: total, Peaks: make([]quantity.Amount, n)}
		trail.Touch(from, to, 7)
		for i := range int64(n) {
			want := quantity.Amount(0)
			for u := max(0, from); u < min(to, total); u++ {
				if u*int64(n) < (i+1)*total && (u+1)*int64(n) > i*total {
					want = 7
				}
			}
			if trail.Peaks[i] != want {
				t.Fatalf("[%d,%d) of %d in %d stretches: %v", from, to, total, n, trail.Peaks)
			}
		}
	})
	large := forecast.Trail{Total: math.MaxInt64}
	large.Touch(math.MaxInt64/2, math.MaxInt64, 3)
	if len(large.Peaks) != forecast.Stretches || large.Peaks[7] != 0 && large.Peaks[6] != 0 || slices.Contains(large.Peaks[8:], 0) {
		t.Errorf("half of a very long run: %v", large.Peaks)
	}
}

func someRuns(t *rapid.T, most int) *forecast.Runs {
	r := &forecast.Runs{}
	for range rapid.IntRange(1, most).Draw(t, "runs") {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		run := forecast.Run{Unit: time.Duration(rapid.Int64Range(0, 9).Draw(t, "unit"))}
		for range n {
			run.Peaks = append(run.Peaks, quantity.Amount(rapid.Int64Range(0, 50).Draw(t, "peak")))
		}
		r.Add(run)
	}
	return r
}

// TestATableIsItsDefinition: an entry is the order statistic of the runs' peaks over the stretches it is for; it never falls
// as a piece grows, at either end.
func TestATableIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRuns(t, 25)
		total, theta := rapid.Int64Range(1, 40).Draw(t, "total"), rapid.Int64Range(10_000, 500_000).Draw(t, "theta")
		table, ok := r.Table(total, theta)
		if table.Total() != total {
			t.Fatalf("the table is of %d units", table.Total())
		}
		start := func(i int) int64 {
			if i == 0 {
				return 0
			}
			return table.Bounds[i-1]
		}
		for i := range table.Least {
			for k, least := range table.Least[i] {
				// A run's use over joined stretches is that over all of them, so the parts' maximum is the definition.
				over, enough := r.Over(total, start(i), table.Bounds[i+k], theta)
				if over > least || ok != enough {
					t.Fatalf("%d..%d: %d, and over the whole piece %d; %v and %v", i, i+k, least, over, ok, enough)
				}
				if k > 0 && least < max(table.Least[i][k-1], table.Least[i+1][k-1]) {
					t.Fatalf("%d..%d: falls: %v", i, i+k, table.Least)
				}
			}
		}
		p, _ := r.Envelope(total, theta)
		if _, err := trp.Compile(p, total, theta); err != nil {
			t.Fatalf("the envelope is no profile: %v", err)
		}
	})
}

func TestOfOneRunEverythingIsItsOwn(t *testing.T) {
	r := &forecast.Runs{List: []forecast.Run{{Peaks: []quantity.Amount{5, 9, 2, 7}, Unit: 3}}}
	table, ok := r.Table(8, 500_000)
	want := [][]quantity.Amount{{5, 9, 9, 9}, {9, 9, 9}, {2, 7}, {7}}
	if !ok || !slices.Equal(table.Bounds, []int64{2, 4, 6, 8}) || !slices.EqualFunc(table.Least, want, slices.Equal[[]quantity.Amount]) {
		t.Errorf("%v: %+v", ok, table)
	}
	if _, ok = r.Table(8, 10_000); ok {
		t.Error("one run promises a hundredth")
	}
	if u, ok := r.Unit(500_000); u != 3 || !ok {
		t.Errorf("a unit takes %v, %v", u, ok)
	}
	if table, _ = r.Table(1, 500_000); !slices.Equal(table.Bounds, []int64{1}) || table.Least[0][0] != 9 {
		t.Errorf("of one unit: %+v", table)
	}
}

func TestTheNewestRunsStay(t *testing.T) {
	var r forecast.Runs
	r.Add(forecast.Run{})
	r.Add(forecast.Run{Peaks: make([]quantity.Amount, trp.MaxStretches+1)})
	for i := range forecast.MaxRuns + 44 {
		r.Add(forecast.Run{Peaks: []quantity.Amount{quantity.Amount(i)}})
	}
	if n := len(r.List); n != forecast.MaxRuns || r.List[0].Peaks[0] != 44 || r.List[n-1].Peaks[0] != forecast.MaxRuns+43 {
		t.Errorf("%d runs, the first %+v", n, r.List[0])
	}
}

// ofTemplate is a run of a template: warm-up, a plateau that differs from run to run, sometimes a burst near its end.
func ofTemplate(rng *prng.Stream) forecast.Run {
	level := 14_000 + int64(1500*rng.Normal())
	run := forecast.Run{Unit: time.Duration(1e6 * (1 + rng.Exp()))}
	for i := range 8 {
		peak := level + int64(rng.IntN(500))
		if i == 0 {
			peak = 6000 + int64(rng.IntN(200))
		}
		if i == 6 && rng.IntN(10) == 0 {
			peak += 8000
		}
		run.Peaks = append(run.Peaks, quantity.Amount(peak))
	}
	return run
}

// TestTheNextRunIsCovered: pieces of the next run stay within the table, the whole next run within the envelope, its time
// within the quantile, but for a share of theta and three standard deviations.
func TestTheNextRunIsCovered(t *testing.T) {
	const trials, total = 1500, 80
	for _, c := range []struct {
		runs  int
		theta int64
	}{{25, 50_000}, {45, 50_000}, {99, 10_000}, {120, 20_000}} {
		rng := prng.New(11, uint64(c.runs))
		var early, late, whole, slow int
		saved := 0.0
		for range trials {
			var r forecast.Runs
			for range c.runs {
				r.Add(ofTemplate(&rng))
			}
			table, ok := r.Table(total, c.theta)
			envelope, ok2 := r.Envelope(total, c.theta)
			unit, ok3 := r.Unit(c.theta)
			if !ok || !ok2 || !ok3 {
				t.Fatalf("%d runs are too few", c.runs)
			}
			next := ofTemplate(&rng)
			if slices.Max(next.Peaks[:2]) > table.LeastOver(0, 20, 0) {
				early++
			}
			if slices.Max(next.Peaks[2:]) > table.LeastOver(20, total, 0) {
				late++
			}
			for i, p := range next.Peaks {
				if p > envelope.Curve[i].Amount {
					whole++
					break
				}
			}
			if next.Unit > unit {
				slow++
			}
			saved += 1 - float64(table.LeastOver(0, 10, 0))/float64(table.Peak(0))
		}
		theta := float64(c.theta) / forecast.One
		most := int(trials*theta + 3*math.Sqrt(trials*theta*(1-theta)))
		for what, missed := range map[string]int{"early pieces": early, "late pieces": late, "whole runs": whole, "times": slow} {
			if missed > most {
				t.Errorf("%d runs at %v: %d of %d %s missed, want at most %d", c.runs, theta, missed, trials, what, most)
			}
		}
		if saved/trials < .4 {
			t.Errorf("the warm-up needs little, and only %.2f of the peak is saved", saved/trials)
		}
	}
}

// TestTheRule: what is known decides, and what was seen is never less than what is asked for.
func TestTheRule(t *testing.T) {
	const theta = 100_000
	runs := func(n int, peak quantity.Amount) *forecast.Runs {
		r := &forecast.Runs{}
		for i := range n {
			r.Add(forecast.Run{Peaks: []quantity.Amount{peak - quantity.Amount(i), peak}})
		}
		return r
	}
	declared := &trp.Table{Bounds: []int64{4, 10}, Least: [][]quantity.Amount{{50, 60}, {60}}}
	for _, c := range []struct {
		name            string
		declared        *trp.Table
		template, queue *forecast.Runs
		want            quantity.Amount // over the whole run; 0 for no table
		source          forecast.Source
	}{
		{"nothing is known", nil, nil, nil, 0, forecast.Whole},
		{"too little is known", nil, runs(8, 80), runs(8, 80), 0, forecast.Whole},
		{"a queue", nil, nil, runs(9, 80), 80, forecast.Queued},
		{"a queue, and a run above it", nil, runs(1, 90), runs(9, 80), 90, forecast.Queued},
		{"declared", declared, nil, runs(20, 80), 60, forecast.Declared},
		{"declared, seen less", declared, runs(8, 40), nil, 60, forecast.Declared},
		{"declared, seen more", declared, runs(8, 80), nil, 80, forecast.Declared},
		{"taught less", declared, runs(9, 40), nil, 40, forecast.Taught},
		{"taught more", declared, runs(9, 80), nil, 80, forecast.Taught},
	} {
		table, source := forecast.Rule(c.declared, c.template, c.queue, 10, theta)
		if got := table.LeastOver(0, 10, 0); got != c.want || source != c.source || source != forecast.Whole && table.Total() != 10 {
			t.Errorf("%s: %d by %v, want %d by %v", c.name, got, source, c.want, c.source)
		}
	}
	if declared.Least[0][1] != 60 {
		t.Error("the declared table has changed")
	}
	if forecast.Taught.String() != "its template's runs" || forecast.Source(9).String() != "unknown" {
		t.Error("the sources' names")
	}
}

// BenchmarkTable is of a full memory, which is what a zone would compute when a template's job comes.
func BenchmarkTable(b *testing.B) {
	rng := prng.New(1)
	for _, stretches := range []int{forecast.Stretches, trp.MaxStretches} {
		var r forecast.Runs
		for range forecast.MaxRuns {
			run := forecast.Run{}
			for range stretches {
				run.Peaks = append(run.Peaks, quantity.Amount(rng.IntN(1<<40)))
			}
			r.Add(run)
		}
		b.Run(map[bool]string{true: "16", false: "64"}[stretches == forecast.Stretches], func(b *testing.B) {
			for b.Loop() {
				if _, ok := r.Table(1000, 10_000); !ok {
					b.Fatal("too few runs")
				}
			}
		})
	}
}
