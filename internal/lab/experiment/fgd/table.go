package fgd

import (
	"context"
	"runtime"
	"sync"

	"sluice.dev/sluice/internal/lab/planner"
)

// Options of a table of runs.
type Options struct {
	// Dir has the folder openb.
	Dir       string
	Workloads []string
	Kinds     []planner.Kind
	Seeds     []uint64
	// Workers is how many runs go at once; 0 for GOMAXPROCS.
	Workers int
	// Progress is called after each run with how many are done of how many; nil if not wanted. Calls do not overlap.
	Progress func(done, total int)
}

// Result is one run.
type Result struct {
	Workload, Policy string
	Seed             uint64
	Curve            *Curve
}

// Table runs every workload under every kind with every seed, and returns the runs in that order. If ctx ends early, it
// returns those that are done and no error.
func Table(ctx context.Context, o Options) ([]Result, error) {
	workloads := make([]*Workload, len(o.Workloads))
	for i, name := range o.Workloads {
		var err error
		if workloads[i], err = Load(o.Dir, name); err != nil {
			return nil, err
		}
	}
	t := &table{options: o, results: make([]Result, len(o.Workloads)*len(o.Kinds)*len(o.Seeds))}
	// One job is one draw of arrivals, which all kinds share.
	jobs := make(chan job)
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				t.run(ctx, workloads[j.workload], j)
			}
		})
	}
	t.feed(ctx, jobs)
	wg.Wait()
	if t.err != nil {
		return nil, t.err
	}
	done := t.results[:0]
	for _, r := range t.results {
		if r.Curve != nil {
			done = append(done, r)
		}
	}
	return done, nil
}

type job struct{ workload, seed int }

type table struct {
	options Options
	results []Result
	mu      sync.Mutex
	done    int
	err     error
}

// feed hands out all jobs, or those until ctx ends.
func (t *table) feed(ctx context.Context, jobs chan<- job) {
	defer close(jobs)
	for w := range t.options.Workloads {
		for s := range t.options.Seeds {
			select {
			case jobs <- job{w, s}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// run does a job for every kind.
func (t *table) run(ctx context.Context, w *Workload, j job) {
	o := &t.options
	setup := w.Draw(o.Seeds[j.seed])
	for k, kind := range o.Kinds {
		if ctx.Err() != nil {
			return
		}
		curve, err := Run(kind, setup)
		t.mu.Lock()
		if err != nil && t.err == nil {
			t.err = err
		}
		t.results[(j.workload*len(o.Kinds)+k)*len(o.Seeds)+j.seed] = Result{w.Name, kind.Name, setup.Seed, curve}
		t.done++
		if o.Progress != nil {
			o.Progress(t.done, len(t.results))
		}
		t.mu.Unlock()
	}
}
