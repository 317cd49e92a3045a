// Laminar runs every study of docs/laminar.md and writes it, with its figures: `make laminar`, and `make evaluation` with the market's.
// But for the processor's time the same seeds give the same page on every machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "laminar:", err)
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
	// model solves the theory.
	model func(*fluid.Model) fluid.Figures
}

func run() error {
	s := settings{model: (*fluid.Model).Solve}
	var seeds, only string
	flag.StringVar(&s.data, "data", os.Getenv("SLUICE_DATA"),
		"folder of published traces, for the study of logs; without it that one is left out, and the page says so")
	flag.StringVar(&s.out, "out", "docs", "folder to write laminar.md and laminar/*.svg to")
	flag.StringVar(&s.keep, "keep", ".tmp/laminar", "folder for every single result: one JSON for each study")
	flag.BoolVar(&s.again, "again", false, "write the page from the results kept by the last run, without running anything")
	flag.StringVar(&seeds, "seeds", "1-3", "seeds of every point")
	flag.StringVar(&only, "only", "", "studies to run, such as load,age; their page is written to the folder of results then")
	flag.IntVar(&s.workers, "workers", 2, "runs at once; a world of 100,000 nodes takes some 300 MB")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Laminar runs every study of docs/laminar.md and writes it.\n\n"+
			"  go run ./bench/laminar -data DIR               all studies, into docs\n"+
			"  go run ./bench/laminar -only load -seeds 1     a quick look at one study, in .tmp/laminar\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	var err error
	if s.seeds, err = scenario.Seeds(seeds); err != nil {
		return err
	}
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
	var known []string
	for _, t := range all {
		known = append(known, t.name)
	}
	for _, name := range s.only {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no study %q; %s", name, strict.Hint(name, known))
		}
	}
	if err := os.MkdirAll(s.keep, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	var done []result
	for _, t := range all {
		if len(s.only) > 0 && !slices.Contains(s.only, t.name) {
			continue
		}
		r := result{study: t}
		if t.traced && s.data == "" {
			r.skipped = "No published traces were given (-data DIR)."
			done = append(done, r)
			continue
		}
		var err error
		if s.again {
			err = r.recall(s.keep)
		} else if err = r.run(ctx, s, progress); err == nil {
			err = r.store(s.keep)
		}
		if err != nil {
			return fmt.Errorf("study %s: %w", t.name, err)
		}
		r.solve(s.model)
		done = append(done, r)
	}
	fmt.Fprintf(progress, "all studies took %s\n", time.Since(begin).Round(time.Second))
	if len(s.only) > 0 {
		s.out = s.keep
		fmt.Fprintf(progress, "a page of them is in %s; that of the repository is written by a run of all studies\n", s.out)
	}
	return write(s, done)
}
