package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// ownJobs and ownItems are what is measured of Sluice: a subjob for each no-op, and no-ops in subjobs as they are cut.
	ownJobs, ownItems = "Noop/sluice-jobs", "Noop/sluice-items"
	perSecond         = "noops/s"
)

// contender runs a number of no-op processes, s.slots at a time.
type contender struct {
	name string
	// lacks is what it does not do that the others do, for people.
	lacks string
	// run runs n and returns how long it took from the order to the known end of the last one, with other figures.
	run func(ctx context.Context, n int) (time.Duration, []figure, error)
	// processes of one measurement.
	processes int
}

// noops measures all contenders in turn, so that a machine that is busy for a while is busy for all of them.
func noops(ctx context.Context, s *settings, b *book) (err error) {
	all := []contender{
		{ownJobs, "a job, a durable claim and lease, a supervisor and a namespace for each no-op", s.ownJobs, s.processes},
		{ownItems, "the same for each subjob, which works on many no-ops", s.ownItems, s.units},
	}
	peers, stop := s.peers(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	all = append(all, peers...)
	for _, c := range all {
		fmt.Printf("# %s: %s\n", c.name, c.lacks)
	}
	for range s.pairs {
		for _, c := range all {
			took, more, err := c.run(ctx, c.processes)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			b.add(c.name, c.processes, append([]figure{{float64(c.processes) / took.Seconds(), perSecond}}, more...)...)
		}
	}
	return nil
}

// ownJobs submits n jobs of one no-op each, in one file, and waits for the last commit. The time of the submission is in
// it.
func (s *settings) ownJobs(ctx context.Context, n int) (took time.Duration, more []figure, err error) {
	d, err := s.up(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	files := make([]string, n)
	for i := range files {
		files[i] = tiny(fmt.Sprintf("noop-%d", i))
	}
	begin := time.Now()
	if err = d.Send(ctx, strings.Join(files, "---\n")); err != nil {
		return 0, nil, err
	}
	if err = d.Completed(ctx, n); err != nil {
		return 0, nil, err
	}
	return time.Since(begin), nil, nil
}

// ownItems submits one job of n units, each a no-op process, and lets it be cut.
func (s *settings) ownItems(ctx context.Context, n int) (took time.Duration, more []figure, err error) {
	d, err := s.up(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	file := fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: noops}
spec:
  items: {total: %d, perItem: 5ms, parallelism: %d}
  memory: 32Mi
  command: [sh, -c, 'i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do /bin/true; i=$((i+1)); done']
  grace: 1s
`, n, s.slots)
	begin := time.Now()
	if err = d.Send(ctx, file); err != nil {
		return 0, nil, err
	}
	if err = d.Completed(ctx, 1); err != nil {
		return 0, nil, err
	}
	took = time.Since(begin)
	claims, err := d.Metrics(ctx, "sluice_claims_settled_total")
	return took, []figure{{claims["committed"], "subjobs"}}, err
}
