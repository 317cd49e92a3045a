package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/bench/sample"
)

// tiny is a job of one unit that does nothing.
func tiny(name string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  items: {total: 1, perItem: 10ms}
  memory: 16Mi
  command: [/bin/true]
  grace: 1s
`, name)
}

// submissions measures the time from a submission to its answer, which is given when the job is durable, with one client
// and with 64. The slices are taken, so that nothing else is going on.
func submissions(ctx context.Context, s *settings, b *book) (err error) {
	for range s.pairs {
		for _, clients := range []int{1, 64} {
			if err := submitting(ctx, s, b, clients); err != nil {
				return err
			}
		}
	}
	return nil
}

// submitting is one measurement, on a daemon of its own: jobs of the one before would make its rounds longer.
func submitting(ctx context.Context, s *settings, b *book, clients int) (err error) {
	d, err := s.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	if _, err := d.Drain(ctx, ""); err != nil {
		return err
	}
	n := s.submissions
	if clients > 1 {
		n *= 4
	}
	n = min(n, 1900) // the daemon answers 2,000 calls at once, then 1,000 a second
	took := make([]float64, n)
	var next atomic.Int64
	errs := make([]error, clients)
	var all sync.WaitGroup
	begin := time.Now()
	for c := range clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil; i = int(next.Add(1)) - 1 {
				at := time.Now()
				errs[c] = d.Send(ctx, tiny(fmt.Sprintf("j%d", i)))
				took[i] = sample.Milliseconds(time.Since(at))
			}
		})
	}
	all.Wait()
	rate := float64(n) / time.Since(begin).Seconds()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	slices.Sort(took)
	b.add(fmt.Sprintf("Submit/clients=%d", clients), n, figure{sample.Median(took), "ms-p50"}, figure{sample.Quantile(took, 99), "ms-p99"},
		figure{rate, "jobs/s"})
	return nil
}
