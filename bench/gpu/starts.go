package main

import (
	"context"
	"slices"
	"time"

	"sluice.dev/sluice/bench/sample"
)

// milestones of programs/start.py, in Unix time.
type milestones struct {
	Began    float64 `json:"began"`
	Imported float64 `json:"imported"`
	Opened   float64 `json:"opened"`
	Answered float64 `json:"answered"`
}

// starts measures how long a cold start takes: from the submission to the program's first line, to PyTorch, to the device, to the first
// result, and the same without Sluice.
func starts(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	var ours, bare [4][]float64
	note := func(to *[4][]float64, from time.Time, m milestones) {
		for i, d := range []float64{m.Began - unix(from), m.Imported - m.Began, m.Opened - m.Imported, m.Answered - m.Opened} {
			to[i] = append(to[i], 1000*d)
		}
	}
	for range w.pace.starts {
		began := time.Now()
		name, err := w.submit(ctx, "start", job{program: []string{"start.py"},
			spec: map[string]any{"rigid": map[string]any{"walltime": "60s"}}})
		if err != nil {
			return nil, err
		}
		if _, err = w.completed(ctx, name); err != nil {
			return nil, err
		}
		var m milestones
		if err = w.output(ctx, name, "start.json", &m); err != nil {
			return nil, err
		}
		note(&ours, began, m)
	}
	for range w.pace.starts {
		began := time.Now()
		var m milestones
		if err := w.bare(ctx, 1, nil, "start.json", &m, "start.py"); err != nil {
			return nil, err
		}
		note(&bare, began, m)
	}
	var seen []figure
	for i, what := range []string{"to the first line", "then PyTorch", "then the device", "then the first result"} {
		slices.Sort(ours[i])
		slices.Sort(bare[i])
		seen = append(seen, fig(what, "%.0f ms as a job, %.0f ms without Sluice (medians of %d)", sample.Median(ours[i]),
			sample.Median(bare[i]), w.pace.starts))
	}
	return seen, nil
}
