// Leftover runs the studies of docs/leftover.md and writes it, with its figures: `make leftover`. The same seeds give the same page on
// every machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "leftover:", err)
		os.Exit(1)
	}
}

// settings of one page.
type settings struct {
	// data is the folder of published traces; without it the scenario that needs them is left out.
	data, out string
	seeds     []uint64
	// sets are replacements in every scenario.
	sets []strict.Set
}

func run() error {
	var s settings
	var seeds string
	flag.StringVar(&s.data, "data", os.Getenv("SLUICE_DATA"), "folder of published traces; without it leftover-logs is left out")
	flag.StringVar(&s.out, "out", "docs", "folder to write leftover.md and leftover/*.svg to")
	flag.StringVar(&seeds, "seeds", "1-5", "seeds of every point")
	flag.Parse()
	var err error
	if s.seeds, err = scenario.Seeds(seeds); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return write(ctx, &s, os.Stderr)
}

// point is one setting of a scenario under several mechanisms.
type point struct {
	label, scenario string
	mechanisms      []string
	sets            []string
}

// play runs a point and gives its results by mechanism, a seed after the other.
func (s *settings) play(ctx context.Context, p point, progress io.Writer) (outcome, error) {
	sets := append([]strict.Set(nil), s.sets...)
	for _, text := range p.sets {
		path, value, _ := strings.Cut(text, "=")
		sets = append(sets, strict.Set{Path: path, Value: value})
	}
	x, err := scenario.Reader{Formats: traces.Formats()}.Load(p.scenario, sets...)
	if err != nil {
		return nil, err
	}
	names := p.mechanisms
	if names == nil {
		names = x.Settings.Use
	}
	m, err := scenario.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}.Find(x, names)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	results, err := scenario.Run(ctx, scenario.Options{Scenario: x, Mechanisms: m, Seeds: s.seeds, Data: &scenario.Traces{Dir: s.data}})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s %s: %s\n", p.scenario, p.label, time.Since(begin).Round(time.Second))
	out := outcome{}
	for _, r := range results {
		if len(r.Broken) > 0 {
			return nil, fmt.Errorf("%s, %s, seed %d: %v", p.scenario, r.Mechanism, r.Seed, r.Broken)
		}
		out[r.Mechanism] = append(out[r.Mechanism], r)
	}
	return out, nil
}

// outcome is the results of a point by mechanism, in the order of the seeds.
type outcome map[string][]scenario.Result

// values of a metric of a mechanism, one for each seed.
func (o outcome) values(mechanism, metric string) (out []float64) {
	for _, r := range o[mechanism] {
		v := r.Metrics.Get(metric)
		if metric == scenario.Finished {
			v = float64(r.Finished)
		}
		out = append(out, v)
	}
	return out
}
