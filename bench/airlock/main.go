// Airlock runs the studies of docs/airlock.md and writes it, with its figure: `make airlock`. The same seeds give the same page on every
// machine.
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
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "airlock:", err)
		os.Exit(1)
	}
}

// settings of one page.
type settings struct {
	out   string
	seeds []uint64
	// sets are replacements in every scenario.
	sets []strict.Set
}

func run() error {
	var s settings
	var seeds string
	flag.StringVar(&s.out, "out", "docs", "folder to write airlock.md and airlock/*.svg to")
	flag.StringVar(&seeds, "seeds", "1-3", "seeds of every point")
	flag.Parse()
	var err error
	if s.seeds, err = scenario.Seeds(seeds); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return write(ctx, &s, os.Stderr)
}

// point is one setting of a scenario under several who act.
type point struct {
	label, scenario string
	names           []string
	sets            []string
}

// play runs a point and gives its results by who acts, a seed after the other.
func (s *settings) play(ctx context.Context, p point, progress io.Writer) (map[string][]scenario.Result, error) {
	sets := append([]strict.Set(nil), s.sets...)
	for _, text := range p.sets {
		path, value, _ := strings.Cut(text, "=")
		sets = append(sets, strict.Set{Path: path, Value: value})
	}
	x, err := scenario.Load(p.scenario, sets...)
	if err != nil {
		return nil, err
	}
	m, err := scenario.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}.Find(x, p.names)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	results, err := scenario.Run(ctx, scenario.Options{Scenario: x, Mechanisms: m, Seeds: s.seeds})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s: %s\n", p.label, time.Since(begin).Round(time.Second))
	out := map[string][]scenario.Result{}
	for _, r := range results {
		if len(r.Broken) > 0 {
			return nil, fmt.Errorf("%s, %s, seed %d: %v", p.label, r.Mechanism, r.Seed, r.Broken)
		}
		out[r.Mechanism] = append(out[r.Mechanism], r)
	}
	return out, nil
}
