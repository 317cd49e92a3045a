package compose_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

const mib = quantity.Amount(1) << 20

// classes of an A100-40GB, some of each.
func classes() []compose.Class {
	return []compose.Class{
		{Class: bound.Class{Name: "1g.5gb", Count: 8, Memory: 4864 * mib}, Compute: 1},
		{Class: bound.Class{Name: "2g.10gb", Count: 4, Memory: 9856 * mib}, Compute: 2},
		{Class: bound.Class{Name: "3g.20gb", Count: 4, Memory: 19968 * mib}, Compute: 3},
	}
}

// all jobs of a workload.
func all(t testing.TB, in compose.Inputs, o compose.Options) ([]workload.Job, compose.Summary) {
	t.Helper()
	s, err := compose.New(in, o)
	if err != nil {
		t.Fatal(err)
	}
	var list []workload.Job
	for {
		var j workload.Job
		ok, err := s.Next(&j)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return list, s.Summary()
		}
		list = append(list, j)
	}
}

// Whatever the options, jobs are good, in order, numbered, and add up to the summary.
func TestJobsAreGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := compose.Options{
			Classes: classes(), Seed: rapid.Uint64Range(0, 50).Draw(t, "seed"), Load: rapid.SampledFrom([]float64{0, .5, 1.2}).Draw(t,
				"load"),
			Cap:        rapid.SampledFrom([]time.Duration{0, 6 * time.Hour}).Draw(t, "cap"),
			Multi:      compose.Multi(rapid.IntRange(0, 2).Draw(t, "multi")),
			Atomizable: rapid.Float64Range(0, 1).Draw(t, "share"),
			Grain:      rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "grain"),
			Restore:    20 * time.Second, Checkpoint: 15 * time.Second, Noise: rapid.Int64Range(0, 200).Draw(t, "noise"),
			TimeError:   compose.Error{Bias: -.5, Sigma: 1},
			MemoryError: compose.Error{Bias: .1, Sigma: rapid.Float64Range(0, 1).Draw(t, "sigma")},
		}
		if rapid.Bool().Draw(t, "by time") {
			o.Window = 12 * time.Hour
		} else {
			o.Jobs = rapid.Int64Range(1, 200).Draw(t, "jobs")
		}
		s, err := compose.New(compose.Generated(synthetic.Jobs{GPUs: synthetic.PhillyGPUs()}), o)
		if err != nil {
			t.Fatal(err)
		}
		sum := s.Summary()
		var specs workload.Specs
		var j workload.Job
		var work float64
		last := quantity.Instant(0)
		n := int64(0)
		for ; ; n++ {
			ok, err := s.Next(&j)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			spec, err := specs.Spec(&j, j.Name())
			if err != nil {
				t.Fatalf("job %d: %v", n, err)
			}
			if j.Number != n || j.Submit < last || n == 0 && j.Submit != 0 || o.Window > 0 && j.Submit > quantity.Instant(o.Window) {
				t.Fatalf("job %d is number %d, submitted at %d after %d", n, j.Number, j.Submit, last)
			}
			if spec.Kind == job.Rigid && spec.Walltime < j.Work || o.Cap > 0 && j.Work > o.Cap {
				t.Fatalf("job %d: walltime %s, work %s", n, spec.Walltime, j.Work)
			}
			if j.Slices > 1 && (o.Multi != compose.Gang || j.Kind != job.Rigid) {
				t.Fatalf("job %d has %d slices, kind %d", n, j.Slices, j.Kind)
			}
			last = j.Submit
			work += j.Work.Seconds() * float64(j.Slices)
		}
		if n != sum.Jobs || math.Abs(work-sum.Work) > 1e-6*work || o.Jobs > 0 && n != o.Jobs {
			t.Fatalf("%d jobs with %.1f s of work; the summary is %+v", n, work, sum)
		}
		if got := sum.Work / sum.Capacity / sum.Span.Seconds(); math.Abs(got-sum.Load) > 1e-6*got || o.Load > 0 && o.Jobs > 0 &&
			math.Abs(got-o.Load) > 1e-3*got {
			t.Fatalf("load is %.4f, asked for %.2f, the summary is %+v", got, o.Load, sum)
		}
		// Whole jobs make up a load only as well as half of the next one lets them, and the capacity for few jobs moves with each.
		widest := 1.
		if o.Multi == compose.Gang {
			widest = 16
		}
		near := widest*o.Cap.Seconds()/2/sum.Capacity/sum.Span.Seconds() + o.Load/8
		if o.Load > 0 && o.Window > 0 && (o.Cap > 0 && math.Abs(sum.Load-o.Load) > near || sum.Span != o.Window) {
			t.Fatalf("asked for load %.2f in %s, got %+v", o.Load, o.Window, sum)
		}
	})
}

// A job's fate is its own: a larger share of atomizable jobs adds to the smaller one's, and nothing else moves.
func TestSharesAreNested(t *testing.T) {
	in := compose.Synthetic()
	var last []workload.Job
	for _, share := range []float64{0, .1, .2, .5, 1} {
		o := compose.Options{Classes: classes(), Seed: 3, Jobs: 2000, Load: .9, Atomizable: share, Cap: 24 * time.Hour,
			MemoryError: compose.Error{Sigma: .1}}
		list, _ := all(t, in, o)
		steps := 0
		for i := range list {
			j := list[i]
			if j.Kind == job.Steps {
				steps++
			}
			if last == nil {
				continue
			}
			before := last[i]
			if before.Kind == job.Steps && j.Kind != job.Steps {
				t.Fatalf("job %d is not atomizable any more at %g", i, share)
			}
			before.Kind, before.Declared = j.Kind, j.Declared
			if !reflect.DeepEqual(before, j) {
				t.Fatalf("job %d changes with the share:\n%+v\n%+v", i, before, j)
			}
		}
		if sd := math.Sqrt(2000 * share * (1 - share)); math.Abs(float64(steps)-2000*share) > 4*sd {
			t.Errorf("%d of 2000 jobs are atomizable, want %.0f +- %.0f", steps, 2000*share, 4*sd)
		}
		last = list
	}
}

// The same seed gives the same, another one another.
// TestDeadlines: a share of the jobs has a deadline within its slack, those of a smaller share are among those of a larger one, and nothing
// else of a job changes.
func TestDeadlines(t *testing.T) {
	in := compose.Synthetic()
	without, _ := all(t, in, compose.Options{Classes: classes(), Seed: 3, Jobs: 1000, Load: .9})
	had := map[int]quantity.Instant{}
	for _, share := range []float64{.2, .5, 1} {
		list, _ := all(t, in, compose.Options{Classes: classes(), Seed: 3, Jobs: 1000, Load: .9,
			Deadlines: compose.Deadlines{Share: share, Least: 3, Most: 8}})
		n := 0
		for i := range list {
			j := list[i]
			if was, ok := had[i]; ok && was != j.Deadline {
				t.Fatalf("job %d has its deadline at %v, and %v with a smaller share", i, j.Deadline, was)
			}
			if j.Deadline != 0 {
				n++
				had[i] = j.Deadline
				if slack := float64(j.Deadline.Sub(j.Submit)) / float64(j.Work); slack < 3-1e-6 || slack >= 8 {
					t.Fatalf("the deadline of job %d is %g times its run time after it came", i, slack)
				}
			}
			j.Deadline = 0
			if !reflect.DeepEqual(j, without[i]) {
				t.Fatalf("job %d changes with the share of deadlines:\n%+v\n%+v", i, without[i], j)
			}
		}
		if sd := math.Sqrt(1000 * share * (1 - share)); math.Abs(float64(n)-1000*share) > 4*sd {
			t.Errorf("%d of 1000 jobs have a deadline, want %.0f +- %.0f", n, 1000*share, 4*sd)
		}
	}
}

func TestSeeds(t *testing.T) {
	o := compose.Options{Classes: classes(), Seed: 1, Jobs: 300}
	a, _ := all(t, compose.Synthetic(), o)
	b, _ := all(t, compose.Synthetic(), o)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gives different jobs")
	}
	o.Seed = 2
	if c, _ := all(t, compose.Synthetic(), o); reflect.DeepEqual(a, c) {
		t.Error("another seed gives the same jobs")
	}
}

// Errors have the moments asked for.
func TestErrors(t *testing.T) {
	o := compose.Options{Classes: classes(), Seed: 4, Jobs: 4000, Atomizable: 1, TimeError: compose.Error{Bias: .2, Sigma: .5},
		MemoryError: compose.Error{Sigma: .25}}
	list, _ := all(t, compose.Synthetic(), o)
	var time1, time2, memory1, memory2 float64
	for _, j := range list {
		x := math.Log(float64(j.Declared)/float64(j.Work)) - .2
		y := math.Log(float64(j.Profile.Phases[0].Mean) / float64(j.Memory.Phases[0].Mean))
		time1, time2, memory1, memory2 = time1+x, time2+x*x, memory1+y, memory2+y*y
		if p := j.Profile.Phases[0]; math.Abs(float64(p.SD)/float64(p.Mean)-math.Hypot(.02, .25)) > 1e-6 {
			t.Fatalf("declares a deviation of %d of %d", p.SD, p.Mean)
		}
	}
	n := float64(len(list))
	for what, x := range map[string][3]float64{"time": {time1, time2, .5}, "memory": {memory1, memory2, .25}} {
		if mean := x[0] / n; math.Abs(mean) > 4*x[2]/math.Sqrt(n) {
			t.Errorf("%s: the mean logarithm is off by %.4f", what, mean)
		}
		if v := x[1] / n / x[2] / x[2]; math.Abs(v-1) > 4*math.Sqrt(2/n) {
			t.Errorf("%s: the variance is %.3f of what was asked for", what, v)
		}
	}
}

// Drop, split and gang of the same jobs.
func TestSeveralGPUs(t *testing.T) {
	in := compose.Generated(synthetic.Jobs{GPUs: []synthetic.Weight{{GPUs: 1, Weight: 1}, {GPUs: 3, Weight: 1}, {GPUs: 64, Weight: 1}},
		Durations: synthetic.Fixed(time.Hour)})
	o := compose.Options{Classes: classes(), Seed: 5, Window: 48 * time.Hour, Atomizable: 1}
	drop, d := all(t, in, o)
	o.Multi = compose.Split
	split, _ := all(t, in, o)
	o.Multi = compose.Gang
	gang, g := all(t, in, o)
	if d.Multi == 0 || g.Unfit == 0 || g.Multi != 0 {
		t.Errorf("dropped %d; of the gangs %d do not fit", d.Multi, g.Unfit)
	}
	singles, triples := 0, 0
	for _, j := range gang {
		switch j.Slices {
		case 1:
			singles++
		case 3:
			triples++
		default:
			t.Fatalf("a gang of %d in a cluster of 16 slices", j.Slices)
		}
	}
	if n := len(drop); singles != n {
		t.Errorf("%d single jobs with gangs, %d without", singles, n)
	}
	if triples == 0 || len(split) < singles+3*triples {
		t.Errorf("%d single jobs and %d gangs of 3 are %d when split", singles, triples, len(split))
	}
	for i := 1; i < len(split); i++ {
		if a, b := split[i-1], split[i]; a.Submit == b.Submit && a.Memory.Seed == b.Memory.Seed {
			t.Fatalf("jobs %d and %d draw the same memory", i-1, i)
		}
	}
}

// Part of a job fits smaller slices than its peak does: that is what the phases are for.
func TestPartsFitSmallerSlices(t *testing.T) {
	list, _ := all(t, compose.Synthetic(), compose.Options{Classes: classes(), Seed: 6, Jobs: 3000, Cap: 24 * time.Hour})
	var specs workload.Specs
	partly, large := 0, 0
	for _, j := range list {
		j.Kind = job.Steps
		s, err := specs.Spec(&j, "x")
		if err != nil {
			t.Fatal(err)
		}
		if s.Safe.Peak(0) <= 4864*mib {
			continue
		}
		large++
		if s.Safe.NextSafe(0, s.Total, 4864*mib, 0) < s.Total {
			partly++
		}
	}
	if large < 500 || partly < large/4 {
		t.Errorf("of %d jobs whose peak passes the smallest slice %d fit it in part; want at least a quarter", large, partly)
	}
}

func TestEveryProblemOfOptions(t *testing.T) {
	_, err := compose.New(compose.Synthetic(), compose.Options{
		Classes: []compose.Class{{Class: bound.Class{Name: "x"}, Compute: 5}}, Jobs: 5, Window: time.Hour, Load: -1, Atomizable: 2,
		Multi: 7, Grain: 1, TimeError: compose.Error{Sigma: 9},
		Deadlines: compose.Deadlines{Share: 2, Least: 1, Most: 1},
	})
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("%v, want invalid options", err)
	}
	for _, want := range []string{"class x: 5 compute", "class x: 0 slices", "give one of them", "load: -1", "atomizable: 2", "multi: 7",
		"grain: 1ns", "time error", "deadlines: {Share:2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %q: %v", want, err)
		}
	}
	if _, err := compose.New(compose.Inputs{}, compose.Options{}); !strings.Contains(err.Error(), "0 programs") ||
		!strings.Contains(err.Error(), "no end") || !strings.Contains(err.Error(), "0 classes") {
		t.Errorf("%v", err)
	}
	small := []compose.Class{{Class: bound.Class{Name: "x", Count: 1, Memory: 1}, Compute: 1}}
	in := compose.Generated(synthetic.Jobs{Count: 10})
	if _, err := compose.New(in, compose.Options{Classes: small, Jobs: 5}); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), "10 fit no slice") {
		t.Errorf("%v", err)
	}
	if _, err := compose.New(in, compose.Options{Classes: classes(), Window: 1000 * time.Hour, Load: 1}); errkind.Of(
		err) != errkind.Invalid || !strings.Contains(err.Error(), "the log ends after 10 jobs") {
		t.Errorf("%v", err)
	}
}

func TestAssumptionsAreSaid(t *testing.T) {
	for multi, want := range map[compose.Multi]string{compose.Drop: "are left out", compose.Split: "as many jobs",
		compose.Gang: "at once"} {
		list := compose.Assumptions(compose.Synthetic(), compose.Options{Multi: multi, Cap: time.Hour,
			Deadlines: compose.Deadlines{Share: .5, Least: 5, Most: 20}})
		if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "several GPUs") && strings.Contains(s, want) }) ||
			!slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "Durations over 1h0m0s") }) ||
			!slices.ContainsFunc(list,
				func(s string) bool { return strings.Contains(s, "50% of the jobs have a deadline: 5 to 20 times") }) {
			t.Errorf("%d: %q", multi, list)
		}
		for _, s := range list {
			if !strings.HasSuffix(s, ".") {
				t.Errorf("no sentence: %q", s)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	s, err := compose.New(compose.Synthetic(), compose.Options{Classes: classes(), Seed: 1, Jobs: 100_000, Load: .9, Atomizable: .5})
	if err != nil {
		b.Fatal(err)
	}
	var j workload.Job
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := s.Next(&j); err != nil {
			b.Fatal(err)
		} else if !ok {
			b.StopTimer()
			if s, err = compose.New(compose.Synthetic(), compose.Options{Classes: classes(), Seed: 1, Jobs: 100_000}); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
}

// Programs have their speeds on parts of a GPU; on a made-up slice every job runs at the slice's own.
func TestSpeeds(t *testing.T) {
	list := append(classes()[:1], compose.Class{Class: bound.Class{Name: "made-up", Count: 2, Memory: 40_000 * mib, Speed: 400}})
	in := compose.Synthetic()
	in.Programs = in.Programs[:1]
	jobs, sum := all(t, in, compose.Options{Classes: list, Seed: 7, Jobs: 10})
	want := []job.SpeedOn{{Profile: "1g.5gb", Permille: in.Programs[0].Speeds[1]}}
	for _, j := range jobs {
		if !slices.Equal(j.Speeds, want) {
			t.Fatalf("speeds %v, want %v", j.Speeds, want)
		}
	}
	if most := 8*float64(want[0].Permille)/1000 + 2*.4; math.Abs(sum.Capacity-most) > 1e-6 {
		t.Errorf("capacity %.4f, want %.4f", sum.Capacity, most)
	}
}
