package score_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// at is an instant in seconds.
func at(seconds int64) quantity.Instant { return quantity.Instant(seconds * 1e9) }

// six is a number in millionths as the tables print it.
func six(millionths int64) string { return fmt.Sprintf("%.6f", float64(millionths)/score.One) }

// The table of our scoring vector: a window of 20 GB from 100 s to 160 s, lambda .5, weights time .4, memory .2, age .4. The
// job's own score is given calibrated (package trust has the way there).
func TestScoringVector(t *testing.T) {
	w := score.Weights{Lambda: 500_000, System: score.System{Time: 400_000, Memory: 200_000, Age: 400_000}}
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	const a, b, c, d = 300, 900, 60, 1800 // seconds waited
	for _, v := range []struct {
		name               string
		start, end, peak   int64
		job, waited        int64
		system, sum, timed string
	}{
		{"a1", 100, 120, 12, 900_000, a, "0.353333", "0.626667", "0.208889"},
		{"a2", 100, 140, 16, 800_000, a, "0.526667", "0.663333", "0.442222"},
		{"b1", 120, 145, 18, 580_000, b, "0.646667", "0.613333", "0.255556"},
		{"b2", 130, 160, 18, 660_000, b, "0.680000", "0.670000", "0.335000"},
		{"c1", 145, 160, 8, 560_000, c, "0.200000", "0.380000", "0.095000"},
		{"d1", 100, 160, 15, 750_000, d, "0.950000", "0.850000", "0.850000"},
	} {
		f := w.Features(&score.Variant{
			Open: at(100), Shut: at(160), Start: at(v.start), End: at(v.end), Demand: quantity.Amount(v.peak * 1e9), Capacity: 20e9,
			Waited: time.Duration(v.waited) * time.Second,
		})
		if got := six(f.Of(w.System)); got != v.system {
			t.Errorf("%s: the system's score is %s, want %s", v.name, got, v.system)
		}
		total := w.Total(v.job, f)
		if got := six(total); got != v.sum {
			t.Errorf("%s: the score is %s, want %s", v.name, got, v.sum)
		}
		if got := score.Weight(total, at(v.end).Sub(at(v.start)), false); got != total {
			t.Errorf("%s: weighs %d by score alone, want %d", v.name, got, total)
		}
		// The score is in whole millionths before it is multiplied: one of them more or less.
		timed := float64(score.Weight(total, at(v.end).Sub(at(v.start)), true)) / score.One / 60_000
		var want float64
		if _, err := fmt.Sscan(v.timed, &want); err != nil || math.Abs(timed-want) > 1e-6 {
			t.Errorf("%s: the score by time is %.7f, want %s", v.name, timed, v.timed)
		}
	}
}

func TestSystemFeatures(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"a third of the window", score.Time(20*time.Second, time.Minute), 333_333},
		{"two thirds, rounded", score.Time(40*time.Second, time.Minute), 666_667},
		{"longer than the window", score.Time(2*hour, hour), score.One},
		{"a window without end", score.Time(hour, math.MaxInt64), 0},
		{"half of the longest", score.Time(math.MaxInt64/2, math.MaxInt64), 500_000},
		{"no window", score.Time(0, 0), 0},
		{"memory", score.Memory(12e9, 20e9), 600_000},
		{"all the memory there can be", score.Memory(trp.MaxAmount-1, trp.MaxAmount), score.One},
		{"residue on neither side", score.Residue(at(0), at(100), at(0), at(100), time.Minute), score.One},
		{"residue that can be sold", score.Residue(at(0), at(100), at(0), at(40), time.Minute), score.One},
		{"residue behind", score.Residue(at(0), at(100), at(0), at(41), time.Minute), 410_000},
		{"residue before", score.Residue(at(0), at(100), at(30), at(100), time.Minute), 700_000},
		{"residue on both sides", score.Residue(at(0), at(100), at(30), at(80), time.Minute), 500_000},
		{"residue of a variant that begins too early", score.Residue(at(0), at(100), at(-20), at(41), time.Minute), 410_000},
		{"one side can be sold", score.Residue(at(0), at(100), at(60), at(90), time.Minute), 900_000},
		{"everything can be sold", score.Residue(at(0), at(100), at(1), at(2), 0), score.One},
		{"has not waited", score.Age(0), 0},
		{"has waited a quarter", score.Age(5 * time.Minute), 250_000},
		{"has waited enough", score.Age(score.AgeFull), score.One},
		{"has waited longer", score.Age(math.MaxInt64), score.One},
		{"waits since tomorrow", score.Age(-hour), 0},
		{"no deadline", score.Urgency(math.MaxInt64), 0},
		{"no slack", score.Urgency(0), score.One},
		{"out of reach", score.Urgency(-1), 0},
		{"longer out of reach than can be", score.Urgency(math.MinInt64), 0},
		{"the slack of one half", score.Urgency(score.UrgencyHalf), 500_000},
		{"three times that", score.Urgency(3 * score.UrgencyHalf), 250_000},
		{"a day less the half", score.Urgency(23 * hour), 41_667},
		{"a week and a day are not alike", score.Urgency(8*24*hour) - score.Urgency(9*24*hour), 573},
		{"the longest slack that is one", score.Urgency(math.MaxInt64 - 1), 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestHeadroom(t *testing.T) {
	// The union of the excess at 18 GB is .016250, at 19 GB .001091.
	p := trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: 14e9, SD: 15e8}, {UpTo: 2, Mean: 15e9, SD: 12e8},
		{UpTo: 3, Mean: 155e8, SD: 1e9}}}
	for _, c := range []struct {
		capacity quantity.Amount
		theta    int64
		want     string
	}{{19e9, 10_000, "0.89"}, {18e9, 10_000, "0.00"}, {18e9, 50_000, "0.68"}, {40e9, 10_000, "1.00"}, {0, 1, "0.00"}} {
		if got := fmt.Sprintf("%.2f", float64(score.Headroom(p, 0, 3, c.capacity, c.theta))/score.One); got != c.want {
			t.Errorf("%d at theta %d: %s, want %s", c.capacity, c.theta, got, c.want)
		}
	}
	v := score.Variant{Profile: &p, Theta: 10_000, To: 3, Within: 19e9}
	if f := (score.Weights{}).Features(&v); f.Headroom != 0 {
		t.Errorf("headroom without a weight is %d: it must not be computed", f.Headroom)
	}
	if f := (score.Weights{System: score.System{Headroom: score.One}}).Features(&v); f.Headroom != score.Headroom(p, 0, 3, 19e9, 10_000) {
		t.Errorf("headroom with a weight is %d", f.Headroom)
	}
}

func TestJobFeatures(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"a tenth of what is left", score.Progress(5, 50), 100_000},
		{"all of it", score.Progress(50, 50), score.One},
		{"nothing is left", score.Progress(0, 0), 0},
		{"no deadline", score.Laxity(at(9), quantity.Never), 0},
		{"without slack", score.Laxity(at(9), at(9)), score.One},
		{"a nanosecond late", score.Laxity(at(9)+1, at(9)), score.One},
		{"late already", score.Laxity(at(9), at(8)), score.One},
		{"never done in time", score.Laxity(quantity.Never, at(8)), score.One},
		{"a quarter of an hour", score.Laxity(at(0), at(900)), 750_000},
		{"an hour", score.Laxity(at(0), at(3600)), 0},
		{"a year", score.Laxity(at(0), at(31_536_000)), 0},
		{"all of time", score.Laxity(math.MinInt64, quantity.Never-1), 0},
		{"no overhead", score.Overhead(0, time.Minute), score.One},
		{"35 s of 350", score.Overhead(35*time.Second, 350*time.Second), 900_000},
		{"nothing but overhead", score.Overhead(time.Minute, time.Minute), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestWeight(t *testing.T) {
	for _, c := range []struct {
		name     string
		score    int64
		duration time.Duration
		perTime  bool
		want     int64
	}{
		{"score alone", 700_000, time.Hour, false, 700_000},
		{"an hour", 700_000, time.Hour, true, 700_000 * 3_600_000},
		{"less than a millisecond", 700_000, time.Microsecond, true, 700_000},
		{"worth nothing", 0, math.MaxInt64, true, 0},
		{"longer than counts", score.One, 13 * time.Hour, true, score.MaxWeight},
		{"just what counts", score.One, 12*time.Hour + 48*time.Minute, true, score.One * 46_080_000},
		{"out of range", 5 * score.One, 0, true, score.One},
	} {
		if got := score.Weight(c.score, c.duration, c.perTime); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Whatever goes in, a score is from 0 to One, and a hundred thousand weights can be added.
func TestScoresStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) int64 {
			return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-5, 5),
				rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, score.One})).Draw(t, name)
		}
		instant := func(name string) quantity.Instant { return quantity.Instant(number(name)) }
		length := func(name string) time.Duration { return time.Duration(number(name)) }
		in := func(what string, x, top int64) {
			if x < 0 || x > top {
				t.Fatalf("%s is %d, want 0 to %d", what, x, top)
			}
		}
		w := drawWeights(t)
		v := score.Variant{
			Open: instant("open"), Shut: instant("shut"), Start: instant("start"), End: instant("end"), Shortest: length("shortest"),
			Demand: quantity.Amount(number("demand")), Capacity: quantity.Amount(number("capacity")), Waited: length("waited"),
			Slack:   length("slack"),
			Profile: &trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 9, Mean: 5, SD: 2}}},
			Theta:   rapid.Int64Range(1, trp.MaxThetaPPM).Draw(t, "theta"),
			From:    number("from"), To: number("to"), Within: quantity.Amount(number("within")),
		}
		f := w.Features(&v)
		for i, x := range []int64{f.Time, f.Memory, f.Residue, f.Headroom, f.Age, f.Urgency} {
			in(fmt.Sprintf("feature %d of the system", i), x, score.One)
		}
		j := score.Job{Progress: score.Progress(number("units"), number("left")),
			Laxity: score.Laxity(instant("finish"), instant("deadline")), Overhead: score.Overhead(length("cost"), length("wall"))}
		in("progress", j.Progress, score.One)
		in("laxity", j.Laxity, score.One)
		in("overhead", j.Overhead, score.One)
		in("the job's score", j.Of(job.DefaultWorth), score.One)
		in("the system's score", f.Of(w.System), score.One)
		wild := score.System{Time: number("time"), Memory: number("memory"), Residue: number("residue"), Headroom: number("headroom"),
			Age: number("age"), Urgency: number("urgency")}
		in("the score", w.Total(number("job"), f), score.One)
		in("the score of anything", w.Total(number("job"), wild), score.One)
		in("the weight", score.Weight(number("score"), length("duration"), true), score.MaxWeight)
		in("the weight by score", score.Weight(number("score"), length("duration"), false), score.One)
	})
	if most := int64(score.MaxWeight); most*100_000 >= 1<<62 {
		t.Errorf("a hundred thousand of %d pass 1<<62", most)
	}
}

// drawWeights draws weights that Validate accepts.
func drawWeights(t *rapid.T) score.Weights {
	w := score.Weights{Lambda: rapid.Int64Range(0, score.One).Draw(t, "lambda")}
	rest := int64(score.One)
	for _, f := range []*int64{&w.System.Time, &w.System.Memory, &w.System.Residue, &w.System.Headroom, &w.System.Urgency} {
		*f = rapid.Int64Range(0, rest).Draw(t, "weight")
		rest -= *f
	}
	w.System.Age = rest
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

// A feature that is better never makes a score worse, and two that are equal in everything score the same.
func TestScoresRiseWithTheirFeatures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWeights(t)
		some := rapid.Int64Range(0, score.One)
		f := score.System{Time: some.Draw(t, "time"), Memory: some.Draw(t, "memory"), Residue: some.Draw(t, "residue"),
			Headroom: some.Draw(t, "headroom"), Age: some.Draw(t, "age"), Urgency: some.Draw(t, "urgency")}
		own := some.Draw(t, "job")
		before := w.Total(own, f)
		better := f
		which := rapid.SampledFrom([]*int64{&better.Time, &better.Memory, &better.Residue, &better.Headroom, &better.Age,
			&better.Urgency}).Draw(t, "which")
		*which = rapid.Int64Range(*which, score.One).Draw(t, "better")
		if after := w.Total(own, better); after < before {
			t.Fatalf("%+v scores %d, the better %+v only %d", f, before, better, after)
		}
		if after := w.Total(rapid.Int64Range(own, score.One).Draw(t, "better job"), f); after < before {
			t.Fatalf("a better job scores %d, less than %d", after, before)
		}
	})
}

// The parts in millionths and their sum, against the plain formula in floats.
func TestTotalIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWeights(t)
		some := rapid.Int64Range(0, score.One)
		f := score.System{Time: some.Draw(t, "time"), Memory: some.Draw(t, "memory"), Residue: some.Draw(t, "residue"),
			Headroom: some.Draw(t, "headroom"), Age: some.Draw(t, "age")}
		own := some.Draw(t, "job")
		share := func(x int64) float64 { return float64(x) / score.One }
		system := share(f.Time)*share(w.System.Time) + share(f.Memory)*share(w.System.Memory) + share(f.Residue)*share(w.System.Residue) +
			share(f.Headroom)*share(w.System.Headroom) + share(f.Age)*share(w.System.Age)
		want := share(w.Lambda)*share(own) + (1-share(w.Lambda))*system
		if got := share(w.Total(own, f)); math.Abs(got-want) > .5000001e-6 {
			t.Fatalf("total %v, want %v", got, want)
		}
		if got := share(f.Of(w.System)); math.Abs(got-system) > .5000001e-6 {
			t.Fatalf("the system's part is %v, want %v", got, system)
		}
	})
}
