// Package play plays scenarios for a page, one setting after the other, under those who are compared there.
package play

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/bench/program"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
	traces "sluice.dev/sluice/internal/lab/trace/all"
)

// Settings of one page.
type Settings struct {
	// Data is the folder of published traces, empty for none; Out the one that the page is written to.
	Data, Out string
	Seeds     []uint64
	// Sets are replacements in every scenario.
	Sets []strict.Set
}

// Main is the main function of a bench that writes the page of a name: seeds are those of every point, data what its flag -data says,
// empty if it needs no traces.
func Main(name, seeds, data string, write func(context.Context, *Settings, io.Writer) error) {
	var s Settings
	if data != "" {
		flag.StringVar(&s.Data, "data", os.Getenv("SLUICE_DATA"), data)
	}
	flag.StringVar(&s.Out, "out", "docs", fmt.Sprintf("folder to write %s.md and %[1]s/*.svg to", name))
	flag.StringVar(&seeds, "seeds", seeds, "seeds of every point")
	flag.Parse()
	program.Main(name, func(ctx context.Context) (err error) {
		if s.Seeds, err = scenario.Seeds(seeds); err != nil {
			return err
		}
		return write(ctx, &s, os.Stderr)
	})
}

// Play runs a scenario with replacements (path=value) under some mechanisms, none for those that it names.
func (s *Settings) Play(ctx context.Context, progress io.Writer, label, name string, mechanisms, sets []string) (Outcome, error) {
	all := append([]strict.Set(nil), s.Sets...)
	for _, text := range sets {
		path, value, _ := strings.Cut(text, "=")
		all = append(all, strict.Set{Path: path, Value: value})
	}
	x, err := scenario.Reader{Formats: traces.Formats()}.Load(name, all...)
	if err != nil {
		return nil, err
	}
	if mechanisms == nil {
		mechanisms = x.Settings.Use
	}
	m, err := play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}.Find(x, mechanisms)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	results, err := play.Run(ctx, play.Options{Scenario: x, Mechanisms: m, Seeds: s.Seeds, Data: &play.Traces{Dir: s.Data}})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s %s: %s\n", name, label, time.Since(begin).Round(time.Second))
	out := Outcome{}
	for _, r := range results {
		if len(r.Broken) > 0 {
			return nil, fmt.Errorf("%s %s, %s, seed %d: %v", name, label, r.Mechanism, r.Seed, r.Broken)
		}
		out[r.Mechanism] = append(out[r.Mechanism], r)
	}
	return out, nil
}

// Outcome is the results by mechanism, in the order of the seeds.
type Outcome map[string][]outcome.Result

// Values of a metric of a mechanism, one for each seed.
func (o Outcome) Values(mechanism, metric string) (out []float64) {
	for _, r := range o[mechanism] {
		v := r.Metrics.Get(metric)
		if metric == outcome.Finished {
			v = float64(r.Finished)
		}
		out = append(out, v)
	}
	return out
}

// Mean of a metric of a mechanism over the seeds.
func (o Outcome) Mean(mechanism, metric string) measure.Estimate {
	return measure.Mean(o.Values(mechanism, metric))
}
