// Evaluation runs every study of docs/evaluation.md and writes it, with its figures: `make evaluation`. The same seeds give
// the same page on every machine.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/bench/sweep"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

func main() {
	sweep.Main(sweep.Usage{
		Name: "evaluation", Seeds: "1-5", Workers: "runs at once; 0 for one for each processor",
		Data: "folder of published traces; without it the same studies run on generated work",
		Keep: "folder for every single result: one JSON and one HTML page for each study",
		Only: "studies to run, such as load,atomizable; the page is not written then",
		Text: `Evaluation runs every study of docs/evaluation.md and writes it.

  go run ./bench/evaluation                         on generated work, into docs
  go run ./bench/evaluation -data DIR -out /tmp/e   on published traces, elsewhere
  go run ./bench/evaluation -only load -seeds 1     a quick look at one study, in .tmp/evaluation
`,
	}, evaluate)
}

// base is the scenario that the studies vary, and where its work stands in it.
func base(s *sweep.Settings, generated bool) (name, work string) {
	if generated || s.Data == "" {
		return "synthetic-mig", "workload.synthetic."
	}
	return "philly-mig", "workload.compose."
}

// evaluate runs the studies in order, keeps their results and writes the page.
func evaluate(ctx context.Context, s *sweep.Settings, progress io.Writer) error {
	all := studies()
	var known []string
	for i := range all {
		known = append(known, all[i].Name)
	}
	if err := s.Known(known); err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(t study) bool { return slices.Contains(s.Only, t.Name) && t.Traced }); i >= 0 && s.Data == "" {
		return fmt.Errorf("study %s needs published traces; say where they are with -data DIR", all[i].Name)
	}
	if err := os.MkdirAll(s.Keep, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	var done []result
	past := memory{data: &play.Traces{Dir: s.Data}}
	for _, t := range all {
		if !s.Wants(t.Name) || t.Traced && s.Data == "" {
			continue
		}
		r, err := t.run(ctx, s, &past, progress)
		if err != nil {
			return fmt.Errorf("study %s: %w", t.Name, err)
		}
		if !s.Again {
			if err := r.keep(s.Keep); err != nil {
				return err
			}
		}
		done = append(done, r)
	}
	fmt.Fprintf(progress, "all studies took %s\n", time.Since(begin).Round(time.Second))
	if len(s.Only) > 0 {
		fmt.Fprintf(progress, "results are in %s; the page is written by a run of all studies\n", s.Keep)
		return nil
	}
	return write(s, done)
}

// result is a study that was run.
type result struct {
	study
	sweep.Rows
	Facts       play.Facts
	Assumptions []string
}

// options are what is to be run at each point.
func (t *study) options(s *sweep.Settings, data *play.Traces) ([]play.Options, error) {
	name, work := base(s, t.Generated)
	table := play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
	seeds := s.Seeds
	if !t.Every {
		seeds = seeds[:min(fewSeeds, len(seeds))]
	}
	var reader scenario.Reader
	if t.Traced {
		reader.Formats = traces.Formats()
	}
	var todo []play.Options
	for _, p := range t.Points {
		var sets []strict.Set
		for _, v := range p.Sets {
			sets = append(sets, strict.Set{Path: strings.Replace(v.Path, "WORK.", work, 1), Value: v.Value})
		}
		sc, err := reader.Load(name, sets...)
		if err != nil {
			return nil, err
		}
		mechanisms, err := table.Find(sc, t.mechanisms())
		if err != nil {
			return nil, err
		}
		todo = append(todo, play.Options{Scenario: sc, Mechanisms: mechanisms, Seeds: seeds, Data: data})
	}
	return todo, nil
}

// run runs every point of the study, several at once: runs of one point differ in length, and none should wait for the longest.
func (t study) run(ctx context.Context, s *sweep.Settings, past *memory, progress io.Writer) (r result, err error) {
	r.study = t
	name, _ := base(s, t.Generated)
	todo, err := t.options(s, past.data)
	if err != nil {
		return r, err
	}
	for i, p := range t.Points {
		if o := &todo[i]; t.Name == mainStudy && p.Label == usualLoad {
			if r.Facts, err = play.Measure(ctx, o.Scenario, o.Mechanisms[0], o.Data); err != nil {
				return r, err
			}
			if r.Assumptions, err = play.Assumptions(o.Scenario, o.Data); err != nil {
				return r, err
			}
		}
	}
	if s.Again {
		return r, r.Recall(filepath.Join(s.Keep, t.Name+".json"), t.Axis)
	}
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	results := make([][]outcome.Result, len(todo))
	err = sweep.Each(ctx, workers, len(todo), func(i int) {
		fmt.Fprintf(progress, "%s %d/%d: %s\n", t.Name, i+1, len(todo), t.Points[i].Label)
	}, func(ctx context.Context, i int) (err error) {
		todo[i].Workers = (workers + len(todo) - 1) / len(todo)
		results[i], err = past.run(ctx, todo[i])
		return err
	})
	for i := 0; err == nil && i < len(todo); i++ {
		err = r.Add(name, t.Axis, t.Points[i], results[i])
	}
	return r, err
}

// keep stores every run, and the page to look at them.
func (r *result) keep(dir string) error {
	kept := report.Study{Title: r.Title, About: r.Question, Rows: r.Rows}
	for _, f := range []struct {
		ext   string
		write func(io.Writer) error
	}{{".json", kept.JSON}, {".csv", kept.CSV}, {".html", kept.HTML}} {
		if err := report.Create(filepath.Join(dir, r.Name+f.ext), f.write); err != nil {
			return err
		}
	}
	return nil
}
