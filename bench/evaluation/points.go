package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

// options are what is to be run at each point.
func (t study) options(s *settings) ([]play.Options, error) {
	name, work := s.base(t.generated)
	table := play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
	seeds := s.seeds
	if !t.every {
		seeds = seeds[:min(fewSeeds, len(seeds))]
	}
	var reader scenario.Reader
	if t.traced {
		reader.Formats = traces.Formats()
	}
	var todo []play.Options
	for _, p := range t.points {
		var sets []strict.Set
		for _, v := range p.sets {
			sets = append(sets, strict.Set{Path: strings.Replace(v.Path, "WORK.", work, 1), Value: v.Value})
		}
		sc, err := reader.Load(name, sets...)
		if err != nil {
			return nil, err
		}
		mechanisms, err := table.Find(sc, strings.Split(t.mechanisms, ","))
		if err != nil {
			return nil, err
		}
		todo = append(todo, play.Options{Scenario: sc, Mechanisms: mechanisms, Seeds: seeds, Data: s.traces})
	}
	return todo, nil
}

// runAll runs the points, several at once: runs of one point differ in length, and none should wait for the longest.
func (t study) runAll(ctx context.Context, s *settings, past *memory, todo []play.Options, progress io.Writer) ([][]outcome.Result,
	error) {
	workers := s.workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, errs := make([][]outcome.Result, len(todo)), make([]error, len(todo))
	turn := make(chan struct{}, workers)
	var crew sync.WaitGroup
	for i, o := range todo {
		turn <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(progress, "%s %d/%d: %s\n", t.name, i+1, len(todo), t.points[i].label)
		o.Workers = (workers + len(todo) - 1) / len(todo)
		crew.Go(func() {
			defer func() { <-turn }()
			if results[i], errs[i] = past.run(ctx, o); errs[i] != nil {
				cancel() // one failure is the answer
			}
		})
	}
	crew.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.New("it was stopped")
	}
	return results, nil
}
