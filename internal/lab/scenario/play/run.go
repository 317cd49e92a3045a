// Package play runs a scenario under mechanisms: the actors of the live program in the simulator, a planner, fillers of a host's gaps, or
// mechanisms for lean nodes; and measures what work a scenario offers.
package play

import (
	"context"
	"runtime"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

// Options of a set of runs: a scenario under every mechanism with every seed.
type Options struct {
	Scenario   *scenario.Scenario
	Mechanisms []Mechanism
	// Seeds; none for the scenario's own.
	Seeds []uint64
	// Data are the published traces, for scenarios that need them.
	Data *Traces
	// Workers is how many runs go at once; 0 for one for each processor. It has no influence on the results.
	Workers int
	// Spans keeps the runs, for pictures: at most this many of each simulation with the first seed, 0 for none.
	Spans int
	// Clock in nanoseconds measures what lean mechanisms take of the processor (measure.CPUNanosPerTask): each run is played three times,
	// one run after the other. nil leaves it out, and results are the same on every machine.
	Clock func() int64
	// Observe gives one more observer of a run under a mechanism, or nil; it is called from several goroutines. It has no influence on the
	// results.
	Observe func(mechanism string, seed uint64) measure.Observer
	// Mail counts what actors say by its kind (outcome.Result.Mail).
	Mail bool
	// Progress is called now and then with how far all is, never twice at once; nil if not wanted.
	Progress func(Progress)
}

// Progress of a set of runs.
type Progress struct {
	// Done of Total runs.
	Done, Total int
	// Now is the virtual time of the run that spoke last, Live how many jobs are in it.
	Now  quantity.Instant
	Live int
}

// Run runs them all. Results come in the order of mechanisms and seeds, whatever the number of workers, and are the same
// bytes for the same options. When ctx ends, what has not begun is left out and what runs is cut off and marked Partial.
// An error is of kind Invalid (what cannot be run, before anything runs) or what a run ended in; there are no results then.
func Run(ctx context.Context, o Options) ([]outcome.Result, error) {
	if o.Data == nil {
		o.Data = &Traces{}
	}
	if len(o.Seeds) == 0 {
		o.Seeds = o.Scenario.Seeds
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	total := len(o.Mechanisms) * len(o.Seeds)
	results, errs := make([]*outcome.Result, total), make([]error, total)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tell := teller{progress: o.Progress, state: Progress{Total: total}}
	r := &runner{o, make([]world, len(o.Seeds))}
	next := make(chan int)
	var crew sync.WaitGroup
	for range min(o.workers(), total) {
		crew.Go(func() {
			for i := range next {
				results[i], errs[i] = r.one(ctx, &o.Mechanisms[i/len(o.Seeds)], i%len(o.Seeds), tell.at)
				tell.done()
				if errs[i] != nil {
					cancel() // one failure is the answer; the others need not end
				}
			}
		})
	}
	for i := range total {
		if ctx.Err() != nil {
			break
		}
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	crew.Wait()
	out := make([]outcome.Result, 0, total)
	for i, x := range results {
		if errs[i] != nil {
			return nil, errkind.Errorf(errkind.Of(errs[i]), "scenario %s, mechanism %s, seed %d: %w",
				o.Scenario.Name, o.Mechanisms[i/len(o.Seeds)].Name, o.Seeds[i%len(o.Seeds)], errs[i])
		}
		if x != nil {
			out = append(out, *x)
		}
	}
	return out, nil
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// teller passes progress on, one call at a time.
type teller struct {
	mu       sync.Mutex
	progress func(Progress)
	state    Progress
}

func (t *teller) at(now quantity.Instant, live int) {
	if t.progress == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Now, t.state.Live = now, live
	t.progress(t.state)
}

func (t *teller) done() {
	if t.progress == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Done++
	t.progress(t.state)
}
