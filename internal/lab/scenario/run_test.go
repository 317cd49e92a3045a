package scenario_test

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	swarms "sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

func table() play.Table {
	return play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds(), Swarm: swarms.Kinds()}
}

// TestShippedScenariosAreAsExpected runs every scenario as its file says; those of published traces where these are.
func TestShippedScenariosAreAsExpected(t *testing.T) {
	for _, name := range scenario.Shipped() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := reader().Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("the file of %s calls itself %s", name, s.Name)
			}
			traces := &play.Traces{}
			if s.NeedsData() {
				traces.Dir = filepath.Dir(filepath.Dir(tracetest.Data(t, compose.PhillyFile)))
			}
			m, err := table().Find(s, s.Settings.Use)
			if err != nil {
				t.Fatal(err)
			}
			results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Data: traces})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Expect) == 0 {
				t.Error("it expects nothing")
			}
			for _, f := range outcome.Judge(s.Expect, m[0].Name, results) {
				if !f.OK || f.Open {
					t.Errorf("%s: %s", f.Text, f.Seen)
				}
			}
		})
	}
}

// TestSmallIsWhatItSays: the facts that make small a test of filling gaps are measured, not claimed.
func TestSmallIsWhatItSays(t *testing.T) {
	s, err := scenario.Load("small")
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{play.SJA})
	if err != nil {
		t.Fatal(err)
	}
	f, err := play.Measure(t.Context(), s, m[0], &play.Traces{})
	if err != nil {
		t.Fatal(err)
	}
	if !f.Measured || f.Slices < 4 || f.Load < .9 || f.RigidShare < .3 || f.MeanGap <= 0 || f.MeanGap >= f.MeanJob {
		t.Errorf("%+v", f)
	}
}

// TestSameSeedSameBytes: neither the number of workers nor of processors changes a byte.
func TestSameSeedSameBytes(t *testing.T) {
	s, err := scenario.Load("small", strict.Set{Path: "window", Value: "{until: 2h, limit: 1d}"},
		strict.Set{Path: "model.network", Value: "{delay: 2ms, jitter: 5ms, loss: 1%}"},
		strict.Set{Path: "workload.agents", Value: "[{strategy: honest, share: 40%, think: 5ms}, {strategy: collude, share: 30%}, " +
			"{strategy: hostile, share: 5%}]"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"sja", "sja:throughput", "jasda", "easy", "fgd"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(workers, processors int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		results, err := play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1, 2}, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		var runs []measure.Run
		for i := range results {
			runs = append(runs, results[i].Run)
		}
		var b strings.Builder
		if err := measure.WriteJSON(&b, runs); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one := run(1, 1)
	if strings.Count(one, `"scenario"`) != 10 {
		t.Fatalf("want 10 runs: %s", one)
	}
	for _, workers := range []int{2, 7} {
		if two := run(workers, 4); two != one {
			t.Errorf("with %d workers the bytes differ:\n%s\n%s", workers, one, two)
		}
	}
	if other := run(1, 1); strings.Contains(one, "NaN") || other != one {
		t.Error("a second run differs")
	}
}

// TestAnInterruptionKeepsWhatThereIs: what was whole stays whole, what ran is marked, and nothing is an error.
func TestAnInterruptionKeepsWhatThereIs(t *testing.T) {
	s, err := scenario.Load("small")
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"easy", "sja"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results, err := play.Run(ctx, play.Options{
		Scenario: s, Mechanisms: m, Seeds: []uint64{1}, Workers: 1,
		Progress: func(p play.Progress) {
			if p.Done == 1 && p.Now > 0 {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 || results[0].Partial || len(results) == 2 && !results[1].Partial {
		t.Errorf("got %d results: %+v", len(results), results)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if results, err := play.Run(ctx, play.Options{Scenario: s, Mechanisms: m}); err != nil || len(results) != 0 {
		t.Errorf("ended before it began: %d results, %v", len(results), err)
	}
}

func TestMechanismsByName(t *testing.T) {
	s := &scenario.Scenario{Settings: scenario.Settings{Policy: "sla"}}
	m, err := table().Find(s, []string{"easy", "sja", "sja:fifo", "easy"})
	if err != nil || len(m) != 3 || m[0].Planner == nil || m[1].Policy.Name() != "deadline" || m[2].Policy.Name() != "fifo" {
		t.Errorf("%+v, %v", m, err)
	}
	aliased, err := table().Find(s, []string{"sja:fairness", "sja:fair", "jasda:efficiency"})
	if err != nil || len(aliased) != 2 || aliased[0].Name != "sja:fair" || aliased[1].Name != "jasda:throughput" ||
		!strings.HasSuffix(aliased[1].Summary, "policy throughput") {
		t.Errorf("names of before: %+v, %v", aliased, err)
	}
	all, err := table().Find(s, []string{"all"})
	if err != nil || len(all) != 2+len(table().Planners) || all[0].Name != "sja" || all[1].Name != "jasda" {
		t.Errorf("all: %+v, %v", all, err)
	}
	j, err := table().Find(s, []string{"jasda", "jasda:fifo"})
	if err != nil || len(j) != 2 || j[0].Market != &s.Settings.Market || j[0].Policy.Name() != "deadline" || j[1].Policy.Name() != "fifo" ||
		m[1].Market != nil {
		t.Errorf("jasda: %+v, %v", j, err)
	}
	s.Settings.Rigid = "fcfs"
	if m, err := table().Find(s, []string{"sja"}); err != nil || m[0].Rigid.Reserve != 1 || m[0].Rigid.Overtake {
		t.Errorf("strict first-come: %+v, %v", m, err)
	}
	s.Settings.Rigid = "migrate"
	if _, err := table().Find(s, []string{"sja"}); err == nil ||
		!strings.Contains(err.Error(), `planner "migrate" is none for live work; choose one of gangs, fcfs, skip, easy, conservative`) {
		t.Errorf("a planner that preempts: %v", err)
	}
	s.Settings.Rigid = ""
	_, err = table().Find(s, []string{"esay", "sja:fiar", "sjaa"})
	for _, want := range []string{`"esay"; did you mean "easy"?`, `"fiar"; did you mean "fair"?`, `"sjaa"; did you mean "sja"?`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s in %v", want, err)
		}
	}
}

// TestWhatCannotBeRun is said before anything runs, all of it.
func TestWhatCannotBeRun(t *testing.T) {
	s, err := scenario.Load("philly-mig", strict.Set{Path: "faults", Value: "[{every: 1h, kill: node, for: 1m}]"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := table().Find(s, []string{"easy", "fcfs"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = play.Run(t.Context(), play.Options{Scenario: s, Mechanisms: m})
	for _, want := range []string{"--data DIR", "mechanism easy: planners know no", "mechanism fcfs: planners know no"} {
		if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
}
