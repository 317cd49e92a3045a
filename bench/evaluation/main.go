// Evaluation runs every study of docs/evaluation.md and writes it, with its figures: `make evaluation`. The same seeds give
// the same page on every machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "evaluation:", err)
		os.Exit(1)
	}
}

// settings of one evaluation.
type settings struct {
	data, out, keep string
	// again: results kept by an earlier run are read, and nothing is run.
	again   bool
	seeds   []uint64
	only    []string
	workers int
	traces  *play.Traces
}

// base is the scenario that the studies vary, and where its work stands in it.
func (s *settings) base(generated bool) (name, work string) {
	if generated || s.data == "" {
		return "synthetic-mig", "workload.synthetic."
	}
	return "philly-mig", "workload.compose."
}

func run() error {
	var s settings
	var seeds, only string
	flag.StringVar(&s.data, "data", os.Getenv("SLUICE_DATA"),
		"folder of published traces; without it the same studies run on generated work")
	flag.StringVar(&s.out, "out", "docs", "folder to write evaluation.md and evaluation/*.svg to")
	flag.StringVar(&s.keep, "keep", ".tmp/evaluation", "folder for every single result: one JSON and one HTML page for each study")
	flag.BoolVar(&s.again, "again", false, "write the page from the results kept by the last run, without running anything")
	flag.StringVar(&seeds, "seeds", "1-5", "seeds of every point")
	flag.StringVar(&only, "only", "", "studies to run, such as load,atomizable; the page is not written then")
	flag.IntVar(&s.workers, "workers", 0, "runs at once; 0 for one for each processor")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Evaluation runs every study of docs/evaluation.md and writes it.\n\n"+
			"  go run ./bench/evaluation                         on generated work, into docs\n"+
			"  go run ./bench/evaluation -data DIR -out /tmp/e   on published traces, elsewhere\n"+
			"  go run ./bench/evaluation -only load -seeds 1     a quick look at one study, in .tmp/evaluation\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	var err error
	if s.seeds, err = scenario.Seeds(seeds); err != nil {
		return err
	}
	s.traces = &play.Traces{Dir: s.data}
	if only != "" {
		s.only = strings.Split(only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return evaluate(ctx, &s, os.Stderr)
}

// evaluate runs the studies in order, keeps their results and writes the page.
func evaluate(ctx context.Context, s *settings, progress io.Writer) error {
	all := studies()
	for _, name := range s.only {
		if !slices.ContainsFunc(all, func(t study) bool { return t.name == name }) {
			return fmt.Errorf("there is no study %q; %s", name, strict.Hint(name, names(all)))
		}
		if s.data == "" && slices.ContainsFunc(all, func(t study) bool { return t.name == name && t.traced }) {
			return fmt.Errorf("study %s needs published traces; say where they are with -data DIR", name)
		}
	}
	if err := os.MkdirAll(s.keep, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	var done []result
	var past memory
	for _, t := range all {
		if len(s.only) > 0 && !slices.Contains(s.only, t.name) || t.traced && s.data == "" {
			continue
		}
		r, err := t.run(ctx, s, &past, progress)
		if err != nil {
			return fmt.Errorf("study %s: %w", t.name, err)
		}
		if !s.again {
			if err := r.keep(s.keep); err != nil {
				return err
			}
		}
		done = append(done, r)
	}
	fmt.Fprintf(progress, "all studies took %s\n", time.Since(begin).Round(time.Second))
	if len(s.only) > 0 {
		fmt.Fprintf(progress, "results are in %s; the page is written by a run of all studies\n", s.keep)
		return nil
	}
	return write(s, done)
}

func names(all []study) (out []string) {
	for _, t := range all {
		out = append(out, t.name)
	}
	return out
}

// result is a study that was run: rows carry the setting that was varied.
type result struct {
	study
	report.Study
	facts       play.Facts
	assumptions []string
}

// run runs every point of the study.
func (t study) run(ctx context.Context, s *settings, past *memory, progress io.Writer) (result, error) {
	r := result{study: t, Study: report.Study{Title: t.title, About: t.question}}
	name, _ := s.base(t.generated)
	todo, err := t.options(s)
	if err != nil {
		return r, err
	}
	for i, p := range t.points {
		if o := &todo[i]; t.name == mainStudy && slices.ContainsFunc(p.sets, func(v strict.Set) bool { return v.Value == usualLoad }) {
			if r.facts, err = play.Measure(ctx, o.Scenario, o.Mechanisms[0], o.Data); err != nil {
				return r, err
			}
			if r.assumptions, err = play.Assumptions(o.Scenario, o.Data); err != nil {
				return r, err
			}
		}
	}
	if s.again {
		return r, r.recall(filepath.Join(s.keep, t.name+".json"))
	}
	results, err := t.runAll(ctx, s, past, todo, progress)
	if err != nil {
		return r, err
	}
	for i, p := range t.points {
		for _, run := range results[i] {
			if len(run.Broken) > 0 {
				return r, fmt.Errorf("%s, %s, seed %d, broke an invariant: %s", p.label, run.Mechanism, run.Seed,
					strings.Join(run.Broken, "; "))
			}
			r.Rows = append(r.Rows, report.Row{
				Scenario: name, Mechanism: run.Mechanism, Seed: run.Seed, Params: []report.Param{{Name: t.axis.Label, Value: p.x}},
				Metrics: run.Metrics,
			})
		}
	}
	return r, nil
}

// recall reads what keep stored: the setting of a run stands behind its scenario's name.
func (r *result) recall(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	runs, err := measure.ReadJSON(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, run := range runs {
		name, setting, ok := strings.Cut(run.Scenario, " "+r.axis.Label+"=")
		x, err := strconv.ParseFloat(setting, 64)
		if !ok || err != nil {
			return fmt.Errorf("%s: %q names no value of %s: it is of another version of this study; run it again", path, run.Scenario,
				r.axis.Label)
		}
		r.Rows = append(r.Rows, report.Row{
			Scenario: name, Mechanism: run.Mechanism, Seed: run.Seed, Params: []report.Param{{Name: r.axis.Label, Value: x}},
			Metrics: run.Metrics,
		})
	}
	return nil
}

// keep stores every run, and the page to look at them.
func (r *result) keep(dir string) error {
	for _, f := range []struct {
		ext   string
		write func(io.Writer) error
	}{{".json", r.JSON}, {".csv", r.CSV}, {".html", r.HTML}} {
		if err := report.Create(filepath.Join(dir, r.name+f.ext), f.write); err != nil {
			return err
		}
	}
	return nil
}
