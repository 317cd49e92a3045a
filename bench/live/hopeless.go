package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// tried is how many trials a sweep has, of so many steps each.
	tried, stepsOfTrial = 81, 81
	// trialSource says a metric at each step, of 20 ms: it falls from the same start to the trial's level, as losses do.
	trialSource = `awk -v level="$1" 'BEGIN {for (s = 1; s <= 81; s++) {printf "{\"metric\": %f, \"step\": %d}\n", level + 1 / s, s; fflush(); ` +
		`system("sleep 0.02")}}' >> "$SLUICE_METRICS_FILE"`
)

// hopeless measures sweeps that stop hopeless trials beside those that don't: the steps that all trials make, and whether the best is
// kept. Levels are drawn, other ones for each pair.
func hopeless(ctx context.Context, s *settings, b *book) error {
	for pair := range s.pairs {
		levels := make([]string, tried)
		draw := rand.New(rand.NewPCG(uint64(pair), 1)) //nolint:gosec // the same levels each time
		for i := range levels {
			levels[i] = fmt.Sprintf("%.6f", draw.Float64())
		}
		all, _, err := s.sweep(ctx, levels)
		if err != nil {
			return err
		}
		some, kept, err := s.sweep(ctx, levels, "--stop-when", "hopeless", "--goal", "minimize")
		if err != nil {
			return err
		}
		b.add("Hopeless", tried, figure{float64(all), "steps-of-all"}, figure{float64(some), "steps-with-stops"},
			figure{float64(some) / float64(all), "ratio"}, figure{float64(kept), "best-kept"})
	}
	return nil
}

// sweep is how many steps the trials of one made, and 1 if the best came to its end.
func (s *settings) sweep(ctx context.Context, levels []string, flags ...string) (steps, best int64, err error) {
	d, err := s.up(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	dir, err := os.MkdirTemp("", "sluice-bench-sweep-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	call := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(ctx, filepath.Join(s.bin, "sluice"), args...) //nolint:gosec // the program that was built
		c.Dir, c.Env = dir, append(os.Environ(), "SLUICE_SERVER="+strings.TrimPrefix(d.Base, "http://"))
		var said strings.Builder
		c.Stderr = &said
		out, failed := c.Output()
		if failed != nil {
			return nil, fmt.Errorf("sluice %s: %w\n%s", args[0], failed, &said)
		}
		return out, nil
	}
	args := append([]string{"sweep", "--grid", "level=" + strings.Join(levels, ","), "--mem", "16Mi", "--parallel", "4", "--quiet",
		"--name", "s"}, flags...)
	if _, err = call(append(args, "--", "sh", "-c", trialSource, "sh", "{level}")...); err != nil {
		return 0, 0, err
	}
	out, err := call("sweep", "results", "s", "-o", "json")
	if err != nil {
		return 0, 0, err
	}
	var rows []struct {
		Level, State string
		Step         int64
	}
	if err = json.Unmarshal(out, &rows); err != nil {
		return 0, 0, err
	}
	least := levels[0]
	for _, l := range levels {
		least = min(least, l)
	}
	for _, r := range rows {
		steps += r.Step
		if r.Level == least && r.State == "DONE" && r.Step == stepsOfTrial {
			best = 1
		}
	}
	return steps, best, nil
}
