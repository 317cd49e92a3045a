// Laminar runs every study of docs/laminar.md and writes it, with its figures: `make laminar`, and `make evaluation` with the market's.
// But for the processor's time the same seeds give the same page on every machine.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
)

// settings of one evaluation.
type settings struct {
	sweep.Settings
	// model solves the theory.
	model func(*fluid.Model) fluid.Figures
}

func main() {
	sweep.Main(sweep.Usage{
		Name: "laminar", Seeds: "1-3", AtOnce: 2, Workers: "runs at once; a world of 100,000 nodes takes some 300 MB",
		Data: "folder of published traces, for the study of logs; without it that one is left out, and the page says so",
		Keep: "folder for every single result: one JSON for each study",
		Only: "studies to run, such as load,age; their page is written to the folder of results then",
		Text: `Laminar runs every study of docs/laminar.md and writes it.

  go run ./bench/laminar -data DIR               all studies, into docs
  go run ./bench/laminar -only load -seeds 1     a quick look at one study, in .tmp/laminar
`,
	}, func(ctx context.Context, s *sweep.Settings, progress io.Writer) error {
		return evaluate(ctx, &settings{*s, (*fluid.Model).Solve}, progress)
	})
}

// evaluate runs the studies in order, keeps their results and writes the page.
func evaluate(ctx context.Context, s *settings, progress io.Writer) error {
	all := studies()
	var known []string
	for i := range all {
		known = append(known, all[i].Name)
	}
	if err := s.Known(known); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Keep, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	var done []result
	for _, t := range all {
		if !s.Wants(t.Name) {
			continue
		}
		r := result{study: t}
		if t.Traced && s.Data == "" {
			r.Skipped = "No published traces were given (-data DIR)."
			done = append(done, r)
			continue
		}
		var err error
		if s.Again {
			err = r.Recall(r.file(s), r.Axis)
		} else if err = r.run(ctx, s, progress); err == nil {
			err = r.store(s)
		}
		if err != nil {
			return fmt.Errorf("study %s: %w", t.Name, err)
		}
		r.solve(s.model)
		done = append(done, r)
	}
	fmt.Fprintf(progress, "all studies took %s\n", time.Since(begin).Round(time.Second))
	if len(s.Only) > 0 {
		s.Out = s.Keep
		fmt.Fprintf(progress, "a page of them is in %s; that of the repository is written by a run of all studies\n", s.Out)
	}
	return write(s, done)
}
