package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/bench/slurm"
)

// nodes of each Slurm, each with so many processors, which are a pilot's slices.
const nodes, cpus = 4, 2

// noops are no-op jobs a second on pilots, and of Slurm alone on as many nodes, as it comes and tuned.
func noops(ctx context.Context, s *settings) (rows []row, err error) {
	host, err := slurm.Start(ctx, slurm.Options{Dir: filepath.Join(s.temp, "host"), Nodes: nodes, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Stop()) }()
	rates, err := slurm.Contest{Dir: s.temp, Nodes: nodes, CPUs: cpus, Jobs: s.jobs, Turns: s.pairs, Name: "Sluice on pilots",
		Run: func(ctx context.Context, n int) (time.Duration, error) { return s.onPilots(ctx, host, n) }}.Hold(ctx)
	for _, r := range rates {
		rows = append(rows, row{fmt.Sprintf("no-op jobs a second, %d nodes of %d processors: %s", nodes, cpus, r.Name), r.Target,
			r.Measured})
	}
	return rows, err
}

// onPilots has pilots come by work that lasts until they are all there, and then submits n jobs of one no-op each, in one file, and waits
// for the last commit.
func (s *settings) onPilots(ctx context.Context, host *slurm.Cluster, n int) (took time.Duration, err error) {
	w, err := newWorld(s, host.Cluster, lending{most: nodes, slices: cpus, cpus: cpus, lengths: "[20m]"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.end(context.WithoutCancel(ctx), host.Cluster)) }()
	enough := filepath.Join(s.temp, "enough")
	if err = os.RemoveAll(enough); err != nil {
		return 0, err
	}
	if err = w.Send(ctx, fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: come}
spec:
  items: {total: %d, perItem: 100s, parallelism: %d}
  memory: 16Mi
  command: [sh, -c, 'until [ -e %s ]; do sleep 0.1; done']
`, nodes*cpus, nodes*cpus, enough)); err != nil {
		return 0, err
	}
	if err = w.ready(ctx, nodes*cpus); err != nil {
		return 0, err
	}
	if err = os.WriteFile(enough, nil, 0o600); err != nil {
		return 0, err
	}
	if err = w.Completed(ctx, 1); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err = w.Send(ctx, slurm.NoOps("noop", n)); err != nil {
		return 0, err
	}
	if err = w.Completed(ctx, n+1); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}
