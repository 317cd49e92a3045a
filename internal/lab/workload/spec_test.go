package workload_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/workload"
)

const gb = quantity.Amount(1_000_000_000)

// example is the job of the published test vector: 90 units of a minute, memory in three phases.
func example() workload.Job {
	phases := []trp.Phase{{UpTo: 10, Mean: 6 * gb, SD: 3 * gb / 10}, {UpTo: 70, Mean: 14 * gb, SD: 8 * gb / 10},
		{UpTo: 90, Mean: 22 * gb, SD: gb}}
	return workload.Job{
		Number: 7, Queue: "q", Kind: job.Steps, Slices: 1, Units: 90, Grid: 1, Parallelism: 1,
		Work: 90 * time.Minute, Declared: 90*time.Minute + 1, Restore: 20 * time.Second, Checkpoint: 15 * time.Second, Startup: time.Second,
		Profile: trp.Profile{Form: trp.Phases, Phases: phases}, Theta: job.DefaultTheta,
		Memory: workload.Memory{Seed: 3, Phases: phases},
	}
}

func TestSpecOfADivisibleJob(t *testing.T) {
	j := example()
	var specs workload.Specs
	s, err := specs.Spec(&j, j.Name())
	if err != nil {
		t.Fatal(err)
	}
	want, err := trp.Compile(j.Profile, j.Units, j.Theta)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Safe, want) {
		t.Errorf("the table is %v, want %v", s.Safe, want)
	}
	if s.PerUnit != time.Minute+1 || s.TauMin != 315*time.Second || s.Name != "j0000000007" || s.Deadline != quantity.Never ||
		s.Parallelism != 1 {
		t.Errorf("per unit %s, tau_min %s, name %s, deadline %d, parallelism %d", s.PerUnit, s.TauMin, s.Name, s.Deadline, s.Parallelism)
	}
	specs.TauMin, specs.Continue, specs.OverheadMax, j.Template = time.Minute, true, 50, "t"
	if s, err = specs.Spec(&j, "x"); err != nil || s.TauMin != time.Minute || !s.Continue || s.OverheadMax != 50 || s.Template != "t" {
		t.Errorf("settings are not kept: %+v, %v", s, err)
	}
}

func TestSpecOfARigidJobIsOneUnit(t *testing.T) {
	j := example()
	j.Kind, j.Slices = job.Rigid, 2
	var specs workload.Specs
	s, err := specs.Spec(&j, j.Name())
	if err != nil {
		t.Fatal(err)
	}
	table, _ := trp.Compile(j.Profile, j.Units, j.Theta)
	if got, want := s.Safe.LeastOver(0, 1, trp.Unscaled), table.LeastOver(0, 90, trp.Unscaled); got != want || s.Safe.Total() != 1 ||
		s.Total != 1 {
		t.Errorf("needs %d over %d units, want %d over 1", got, s.Safe.Total(), want)
	}
	if s.Walltime != j.Declared || s.Slices != 2 || s.PerUnit != 0 || s.TauMin != 0 || s.Restore != 0 || s.Startup != 0 {
		t.Errorf("%+v", s)
	}
	if again, err := trp.Compile(s.Profile, 1, s.Theta); err != nil || !reflect.DeepEqual(again, s.Safe) {
		t.Errorf("profile and table of the spec differ: %v %v", again, err)
	}
	if from, to := j.Span(0, 1); from != 0 || to != 90 {
		t.Errorf("its one unit spans [%d,%d) of its memory, want [0,90)", from, to)
	}
}

// Two jobs of one shape and different length share thresholds; the tables are those that Compile gives.
func TestTablesAreSharedAndRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs workload.Specs
		for range 3 {
			j := example()
			j.Units = 0
			j.Profile.Phases = nil
			for i := range rapid.IntRange(1, 3).Draw(t, "phases") {
				j.Units += rapid.Int64Range(1, 50).Draw(t, "length")
				j.Profile.Phases = append(j.Profile.Phases, trp.Phase{UpTo: j.Units, Mean: quantity.Amount(i+1) * gb, SD: gb / 10})
			}
			j.Memory.Phases = j.Profile.Phases
			s, err := specs.Spec(&j, j.Name())
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := trp.Compile(j.Profile, j.Units, j.Theta); !reflect.DeepEqual(s.Safe, want) {
				t.Fatalf("%v, want %v", s.Safe, want)
			}
		}
	})
}

func TestEveryProblemOfAJob(t *testing.T) {
	j := workload.Job{Number: 3, Kind: job.Steps, Units: 0, Slices: 2, Parallelism: 2, Startup: -1, External: true}
	var specs workload.Specs
	_, err := specs.Spec(&j, "x")
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("%v, want an invalid job", err)
	}
	for _, want := range []string{"job 3", "0 units", "a grid of 0", "a work of 0s", "a declared time of 0s", "2 slices",
		"a parallelism of 2", "startup -1ns", "0 phases"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %q: %v", want, err)
		}
	}
	j = example()
	if _, err := specs.Spec(&j, "x"); err != nil {
		t.Fatal(err)
	}
	j.Profile.Phases = append([]trp.Phase(nil), j.Profile.Phases...)
	j.Profile.Phases[1].UpTo = 5 // the same amounts, so that the thresholds are known: the ends are looked at all the same
	if _, err := specs.Spec(&j, "x"); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "phases[1]") {
		t.Errorf("ends that do not rise pass: %v", err)
	}
}

func TestNamesSort(t *testing.T) {
	for _, c := range []struct {
		number int64
		want   job.ID
	}{{0, "j0000000000"}, {10, "j0000000010"}, {9_999_999_999, "j9999999999"}, {10_000_000_000, "j10000000000"}} {
		j := workload.Job{Number: c.number}
		if got := j.Name(); got != c.want {
			t.Errorf("job %d is called %s, want %s", c.number, got, c.want)
		}
	}
}

// A run ends at the first phase whose own draw passes, and its peak is the largest draw up to there.
func TestRunAgainstItsDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := example()
		m := workload.Memory{Seed: rapid.Uint64().Draw(t, "seed"), Phases: j.Memory.Phases}
		from := rapid.Int64Range(0, 90).Draw(t, "from")
		to := rapid.Int64Range(from, 90).Draw(t, "to")
		attempt := rapid.Int64Range(0, 5).Draw(t, "attempt")
		capacity := quantity.Amount(rapid.Int64Range(5, 25).Draw(t, "GB")) * gb
		peak, reached := m.Run(from, to, attempt, capacity)

		wantPeak, wantReached := quantity.Amount(0), to
		for unit := from; unit < to; unit++ {
			p := 0
			for m.Phases[p].UpTo <= unit {
				p++
			}
			if wantPeak = max(wantPeak, m.Peak(p, attempt)); wantPeak > capacity {
				wantReached = unit
				break
			}
		}
		if peak != wantPeak || reached != wantReached {
			t.Fatalf("[%d,%d) on %d: peak %d at %d, want %d at %d", from, to, capacity, peak, reached, wantPeak, wantReached)
		}
	})
}

// Draws have the stated moments, and the declared thresholds are passed at most as often as theta says.
func TestPeaksHaveTheirMoments(t *testing.T) {
	j := example()
	var specs workload.Specs
	s, err := specs.Spec(&j, "x")
	if err != nil {
		t.Fatal(err)
	}
	const n = 40_000
	capacity := s.Safe.LeastOver(0, 90, trp.Unscaled)
	var sum, squares float64
	passed := 0
	for a := range int64(n) {
		z := float64(j.Memory.Peak(1, a)-14*gb) / float64(8*gb/10)
		sum, squares = sum+z, squares+z*z
		if _, reached := j.Memory.Run(0, 90, a, capacity); reached < 90 {
			passed++
		}
	}
	if mean := sum / n; math.Abs(mean) > 4/math.Sqrt(n) {
		t.Errorf("mean %.4f deviations off", mean)
	}
	if v := squares / n; math.Abs(v-1) > 4*math.Sqrt(2./n) {
		t.Errorf("variance %.4f, want 1", v)
	}
	if rate, sd := float64(passed)/n, math.Sqrt(.01*.99/n); math.Abs(rate-.01) > 4*sd {
		t.Errorf("passed the threshold of theta .01 in %.4f of the runs (only the last phase is near it: .01 +- %.4f)", rate, 4*sd)
	}
}

func BenchmarkSpec(b *testing.B) {
	j := example()
	var specs workload.Specs
	b.ReportAllocs()
	for b.Loop() {
		if _, err := specs.Spec(&j, "x"); err != nil {
			b.Fatal(err)
		}
	}
}
