package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/core/market/auction"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// TestEveryPointIsAScenario: each setting of each study is one that the language takes, on generated work and on traces, and
// what is called the default is it.
func TestEveryPointIsAScenario(t *testing.T) {
	for _, study := range studies() {
		for _, data := range []string{"", "traces"} {
			if study.Traced && data == "" {
				continue
			}
			if todo, err := study.options(&sweep.Settings{Data: data, Seeds: []uint64{1}}, nil); err != nil ||
				len(todo) != len(study.Points) {
				t.Errorf("study %s: %d of %d points: %v", study.Name, len(todo), len(study.Points), err)
			}
		}
		if study.Usual != "" {
			i := slices.IndexFunc(study.Points, func(p sweep.Point) bool { return p.Label == study.Usual })
			if i < 0 {
				t.Errorf("study %s has no point %q", study.Name, study.Usual)
				continue
			}
			var under []strict.Set // the policy decides what the market's defaults are
			for _, set := range study.Points[i].Sets {
				if set.Path == "mechanism.policy" {
					under = append(under, set)
				}
			}
			plain, err := scenario.Load("synthetic-mig", under...)
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range study.Points[i].Sets {
				if !strings.HasPrefix(set.Path, "market.") {
					continue
				}
				if same, err := scenario.Load("synthetic-mig", append(under, set)...); err != nil || !reflect.DeepEqual(plain, same) {
					t.Errorf("study %s: %v is not the default: %v", study.Name, set, err)
				}
			}
		}
		for _, metric := range append(study.Charts, study.Table...) {
			if measure.About(metric).Title == metric {
				t.Errorf("study %s: there is no metric %s", study.Name, metric)
			}
		}
		for _, pair := range study.Frontier {
			if measure.About(pair[0]).Better == measure.Neither || measure.About(pair[1]).Better == measure.Neither {
				t.Errorf("study %s: of %v nobody knows which is better", study.Name, pair)
			}
		}
	}
}

// TestUsualLambda: the study of lambda calls its default what it is.
func TestUsualLambda(t *testing.T) {
	p, err := policies.ByName("fair")
	if err != nil {
		t.Fatal(err)
	}
	all := studies()
	i := slices.IndexFunc(all, func(s study) bool { return s.Name == "lambda" })
	if is := fmt.Sprintf("%g", float64((auction.Config{}).Under(p).Weights.Lambda)/score.One); is != all[i].Usual {
		t.Errorf("the default is %s, not %s", is, all[i].Usual)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, metric string
		own, other   []float64
		text, how    string
	}{
		{"half the wait on every seed", measure.WaitMean, []float64{10, 100, 1000}, []float64{20, 201, 1999}, "0.50", better},
		{"twice the wait", measure.WaitMean, []float64{20, 201, 1999}, []float64{10, 100, 1000}, "2.00", worse},
		{"now more, now less", measure.WaitMean, []float64{10, 20, 30}, []float64{20, 10, 30}, "1.00", alike},
		{"one waits never", measure.WaitMean, []float64{10, 20}, []float64{0, 0}, "-", alike},
		{"more of the bound", measure.BoundShare, []float64{.9, .91, .92}, []float64{.8, .81, .825}, "+9.83%", better},
		{"one seed says nothing", measure.WaitMean, []float64{10}, []float64{20}, "0.50", alike},
	} {
		text, how := compare(c.metric, c.own, c.other)
		if !strings.HasPrefix(text, c.text) || how != c.how {
			t.Errorf("%s: %s, %s; want %s, %s", c.name, text, how, c.text, c.how)
		}
	}
}

// TestMemory: what has run is not run again, and a study with fewer seeds or mechanisms takes its part of it.
func TestMemory(t *testing.T) {
	load := func(sets ...strict.Set) *scenario.Scenario {
		s, err := scenario.Load("small", append(sets, strict.Set{Path: "window", Value: "{until: 10m, limit: 2h}"})...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	table := play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
	var past memory
	run := func(s *scenario.Scenario, mechanisms string, seeds ...uint64) (out []outcome.Result) {
		m, err := table.Find(s, strings.Split(mechanisms, ","))
		if err != nil {
			t.Fatal(err)
		}
		if out, err = past.run(t.Context(), play.Options{Scenario: s, Mechanisms: m, Seeds: seeds, Workers: 1}); err != nil ||
			len(out) != len(m)*len(seeds) {
			t.Fatalf("%d runs, %v", len(out), err)
		}
		return out
	}
	first := run(load(), "sja,easy", 1, 2)
	marked := past.past[0].runs[sja][2]
	marked.Metrics.Set(measure.WaitMean, -1) // which no run gives
	past.past[0].runs[sja][2] = marked
	again := run(load(strict.Set{Path: "market.rounds", Value: "3"}), "easy,sja", 2)
	if again[0].Mechanism != "easy" || again[1].Metrics.Get(measure.WaitMean) != -1 ||
		again[0].Metrics.Get(measure.WaitMean) != first[3].Metrics.Get(measure.WaitMean) {
		t.Error("what has run is run again")
	}
	if other := run(load(strict.Set{Path: "mechanism.theta", Value: "2%"}), "sja", 2); other[0].Metrics.Get(measure.WaitMean) == -1 {
		t.Error("another setting was not run")
	}
	if more := run(load(), "sja,jasda", 3); more[0].Seed != 3 || more[1].Mechanism != jasda {
		t.Error("a third seed, and jasda beside sja")
	}
}

// TestPageOfKeptResults: results that were kept give the same page again, rows that are alike share one, and a loss is said.
func TestPageOfKeptResults(t *testing.T) {
	r := result{study: studies()[0]}
	for _, m := range []string{sja, "easy", "skip"} {
		for seed := uint64(1); seed <= 3; seed++ {
			wait := float64(100 * seed)
			if m == sja {
				wait *= 3
			}
			row := report.Row{Scenario: "small", Mechanism: m, Seed: seed, Params: []report.Param{{Name: r.Axis.Label, Value: 0.5}}}
			row.Metrics.Set(measure.CompletionMean, wait)
			row.Metrics.Set(measure.Rejected, float64(seed))
			r.Rows = append(r.Rows, row)
		}
	}
	dir := t.TempDir()
	if err := r.keep(dir); err != nil {
		t.Fatal(err)
	}
	again := result{study: r.study}
	if err := again.Recall(filepath.Join(dir, r.Name+".json"), r.Axis); err != nil {
		t.Fatal(err)
	}
	var pages [2]string
	for i, r := range []*result{&r, &again} {
		if err := write(&sweep.Settings{Out: dir}, []result{*r}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "evaluation.md"))
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = string(text)
	}
	if pages[0] != pages[1] {
		t.Errorf("the page of kept results differs:\n%s\n%s", pages[0], pages[1])
	}
	for _, want := range []string{"| load | 0.5 | Completion, mean | 10m0s | easy | 3m20s | 3.00", "| 0.5 | easy, skip |",
		"Jobs rejected"} {
		if !strings.Contains(pages[0], want) {
			t.Errorf("the page does not have %q:\n%s", want, pages[0])
		}
	}
	if err := again.Recall(filepath.Join(dir, "nothing.json"), r.Axis); !os.IsNotExist(err) {
		t.Errorf("absent results: %v", err)
	}
	bad := measure.Run{Scenario: "small other=1", Mechanism: sja}
	path := filepath.Join(dir, "bad.json")
	if err := report.Create(path, func(w io.Writer) error { return measure.WriteJSON(w, []measure.Run{bad}) }); err != nil {
		t.Fatal(err)
	}
	if err := again.Recall(path, r.Axis); err == nil || !strings.Contains(err.Error(), "names no value of load") {
		t.Errorf("results of another study: %v", err)
	}
}

// TestFiguresShowOursAndFourPeers: whatever ran, a figure has ours and at most four others, all of which there are.
func TestFiguresShowOursAndFourPeers(t *testing.T) {
	r := result{study: studies()[0]}
	names := []string{sja, jasda}
	for _, k := range planners.Kinds() {
		names = append(names, k.Name)
	}
	for _, m := range names {
		row := report.Row{Mechanism: m, Seed: 1, Params: []report.Param{{Name: r.Axis.Label, Value: 0.5}}}
		row.Metrics.Set(measure.WaitMean, 1)
		r.Rows = append(r.Rows, row)
	}
	var drawn []string
	for _, s := range r.chart(measure.WaitMean).Series {
		drawn = append(drawn, s.Name)
	}
	if len(drawn) != 2+len(peers()) || len(peers()) > 4 || !slices.Equal(drawn[:2], names[:2]) {
		t.Errorf("the figure shows %v", drawn)
	}
}

// TestFrontiers: the figures have every mechanism, at every point, and the page shows them.
func TestFrontiers(t *testing.T) {
	i := slices.IndexFunc(studies(), func(s study) bool { return len(s.Frontier) > 0 })
	r := result{study: studies()[i]}
	for _, m := range []string{"sja:fair", "jasda:shortest", "easy"} {
		for i, x := range []float64{0.5, 0.9} {
			row := report.Row{Mechanism: m, Seed: 1, Params: []report.Param{{Name: r.Axis.Label, Value: x}}}
			row.Metrics.Set(measure.CompletionMean, float64(10*(i+1)))
			row.Metrics.Set(measure.CompletionP99, 100)
			r.Rows = append(r.Rows, row)
		}
	}
	c := r.against([2]string{measure.CompletionMean, measure.CompletionP99}, 1, 0.9)
	if len(c.Series) != 3 || c.Series[0].Dots[0] != (report.Dot{X: 20, Y: 100}) || c.X.Better != measure.Lower {
		t.Errorf("%+v", c)
	}
	dir := t.TempDir()
	out, err := pages.New(dir, "evaluation")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := (&page{Page: out}).Pictures(&r)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(shown, "\n")
	files, err := os.ReadDir(filepath.Join(dir, "evaluation"))
	if err != nil || len(files) != 2*len(r.Frontier) || strings.Count(text, "![") != len(files) {
		t.Errorf("%d figures, %v:\n%s", len(files), err, text)
	}
	for _, f := range files {
		if !strings.Contains(text, "(evaluation/"+f.Name()+")") {
			t.Errorf("the page does not show %s", f.Name())
		}
	}
}

// TestWhoStops: those that stop running work are left out where ours are compared with those that do not.
func TestWhoStops(t *testing.T) {
	r := result{study: studies()[0]}
	for i, m := range append(stopping(), "easy", "sjf") {
		row := report.Row{Mechanism: m, Seed: 1, Params: []report.Param{{Name: r.Axis.Label, Value: 0.5}}}
		row.Metrics.Set(measure.WaitMean, float64(1+i))
		r.Rows = append(r.Rows, row)
	}
	if got, _ := r.best(0.5, measure.WaitMean, nil); got != stopping()[0] {
		t.Errorf("the best of all is %s", got)
	}
	if got, _ := r.best(0.5, measure.WaitMean, stopping()); got != "easy" {
		t.Errorf("the best of those that stop nothing is %s", got)
	}
}

func TestPositionsOfValuesOnAnAxis(t *testing.T) {
	if math.IsNaN(sweep.Position("17500ms", 0)) || sweep.Position("17500ms", 0) != 17.5 || sweep.Position("10%", 0) != 0.1 ||
		sweep.Position("gang", 2) != 2 {
		t.Error("positions of values on an axis")
	}
}

// TestStudiesOfTraces: a study of published logs is refused where there are none, and that is told before anything runs.
func TestStudiesOfTraces(t *testing.T) {
	for only, want := range map[string]string{"logs": "needs published traces", "laod": `did you mean "load"?`} {
		err := evaluate(t.Context(), &sweep.Settings{Only: []string{only}, Keep: t.TempDir(), Seeds: []uint64{1}}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", only, err, want)
		}
	}
}
