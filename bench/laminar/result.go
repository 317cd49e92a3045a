package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

// result is a study that was run: rows carry the setting that was varied.
type result struct {
	study
	rows []report.Row
	// solved is what the theory says, by the point.
	solved map[float64]fluid.Figures
	// skipped says why it was not run.
	skipped string
}

// options are what is to be run at a point.
func (t *study) options(s *settings, p *point) (play.Options, error) {
	base := p.base
	if base == "" {
		base = t.base
	}
	reader := scenario.Reader{Formats: traces.Formats()}
	sc, err := reader.Load(base, append(usualWindow(base, t.cpu), p.sets...)...)
	if err != nil {
		return play.Options{}, err
	}
	o := play.Options{Scenario: sc, Seeds: s.seeds, Data: &play.Traces{Dir: s.data}, Workers: s.workers}
	if base == medium || base == large || t.cpu {
		o.Seeds = o.Seeds[:1]
	}
	names := t.mechanisms
	if len(names) == 0 {
		names = everybody()
	}
	for _, name := range names {
		k, err := kind(name)
		if err != nil {
			return o, err
		}
		o.Mechanisms = append(o.Mechanisms, play.Mechanism{Name: name, Summary: k.Summary, Swarm: &k})
	}
	if t.cpu {
		begin := time.Now()
		o.Clock, o.Workers = func() int64 { return int64(time.Since(begin)) }, 1
	}
	return o, nil
}

// run runs every point of the study, several at once where no clock is read.
func (r *result) run(ctx context.Context, s *settings, progress io.Writer) error {
	runs, errs := make([][]outcome.Result, len(r.points)), make([]error, len(r.points))
	width := s.workers
	if r.cpu {
		width = 1
	}
	turn := make(chan struct{}, max(1, width))
	var crew sync.WaitGroup
	for i := range r.points {
		o, err := r.options(s, &r.points[i])
		if err != nil {
			return err
		}
		o.Workers = 1
		turn <- struct{}{}
		fmt.Fprintf(progress, "%s %d/%d: %s\n", r.name, i+1, len(r.points), r.points[i].label)
		crew.Go(func() {
			defer func() { <-turn }()
			runs[i], errs[i] = play.Run(ctx, o)
		})
	}
	crew.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("it was stopped")
	}
	for i, p := range r.points {
		for _, x := range runs[i] {
			if len(x.Broken) > 0 {
				return fmt.Errorf("%s, %s, seed %d, broke an invariant: %s", p.label, x.Mechanism, x.Seed, strings.Join(x.Broken, "; "))
			}
			r.rows = append(r.rows, report.Row{Scenario: r.name, Mechanism: x.Mechanism, Seed: x.Seed,
				Params: []report.Param{{Name: r.axis.Label, Value: p.x}}, Metrics: x.Metrics})
		}
	}
	return nil
}

// store keeps every run.
func (r *result) store(dir string) error {
	s := report.Study{Title: r.title, Rows: r.rows}
	return report.Create(filepath.Join(dir, r.name+".json"), s.JSON)
}

// recall reads what store kept: the setting of a run stands behind its study's name.
func (r *result) recall(dir string) error {
	path := filepath.Join(dir, r.name+".json")
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
		_, setting, ok := strings.Cut(run.Scenario, " "+r.axis.Label+"=")
		x, err := strconv.ParseFloat(setting, 64)
		if !ok || err != nil {
			return fmt.Errorf("%s: %q names no value of %s: it is of another version of this study; run it again", path, run.Scenario,
				r.axis.Label)
		}
		r.rows = append(r.rows, report.Row{Scenario: r.name, Mechanism: run.Mechanism, Seed: run.Seed,
			Params: []report.Param{{Name: r.axis.Label, Value: x}}, Metrics: run.Metrics})
	}
	return nil
}

// names are the mechanisms, in the order in which they ran.
func (r *result) names() (out []string) {
	for i := range r.rows {
		if m := r.rows[i].Mechanism; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// estimate of a metric at a setting, over seeds.
func (r *result) estimate(x float64, mechanism, metric string) measure.Estimate {
	var values []float64
	for i := range r.rows {
		if w := &r.rows[i]; w.Mechanism == mechanism && w.Params[0].Value == x {
			values = append(values, w.Metrics.Get(metric))
		}
	}
	return measure.Mean(values)
}

// mean of a metric at a setting.
func (r *result) mean(x float64, mechanism, metric string) float64 {
	return r.estimate(x, mechanism, metric).Mean
}
