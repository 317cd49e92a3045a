package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

// result is a study that was run.
type result struct {
	study
	sweep.Rows
	// solved is what the theory says, by the point.
	solved map[float64]fluid.Figures
	// Skipped says why it was not run.
	Skipped string
}

// options are what is to be run at a point.
func (t *study) options(s *settings, p *sweep.Point) (play.Options, error) {
	base := p.Base
	if base == "" {
		base = t.Base
	}
	reader := scenario.Reader{Formats: traces.Formats()}
	sc, err := reader.Load(base, append([]strict.Set{window(base, t.CPU)}, p.Sets...)...)
	if err != nil {
		return play.Options{}, err
	}
	o := play.Options{Scenario: sc, Seeds: s.Seeds, Data: &play.Traces{Dir: s.Data}, Workers: 1}
	if base == medium || base == large || t.CPU {
		o.Seeds = o.Seeds[:1]
	}
	kinds, err := t.kinds()
	for _, k := range kinds {
		o.Mechanisms = append(o.Mechanisms, play.Mechanism{Name: k.Name, Summary: k.Summary, Swarm: &k})
	}
	if t.CPU {
		begin := time.Now()
		o.Clock = func() int64 { return int64(time.Since(begin)) }
	}
	return o, err
}

// run runs every point of the study, several at once where no clock is read.
func (r *result) run(ctx context.Context, s *settings, progress io.Writer) error {
	todo, runs := make([]play.Options, len(r.Points)), make([][]outcome.Result, len(r.Points))
	for i := range r.Points {
		var err error
		if todo[i], err = r.options(s, &r.Points[i]); err != nil {
			return err
		}
	}
	width := s.Workers
	if r.CPU {
		width = 1
	}
	err := sweep.Each(ctx, width, len(todo), func(i int) {
		fmt.Fprintf(progress, "%s %d/%d: %s\n", r.Name, i+1, len(todo), r.Points[i].Label)
	}, func(ctx context.Context, i int) (err error) {
		runs[i], err = play.Run(ctx, todo[i])
		return err
	})
	for i := 0; err == nil && i < len(runs); i++ {
		err = r.Add(r.Name, r.Axis, r.Points[i], runs[i])
	}
	return err
}

func (r *result) file(s *settings) string { return filepath.Join(s.Keep, r.Name+".json") }

// store keeps every run.
func (r *result) store(s *settings) error {
	kept := report.Study{Title: r.Title, Rows: r.Rows}
	return report.Create(r.file(s), kept.JSON)
}

// mean of a metric at a setting.
func (r *result) mean(x float64, mechanism, metric string) float64 {
	return r.Mean(x, mechanism, metric).Mean
}
