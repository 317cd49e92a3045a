package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/bench/slurm"
)

// noops are no-op jobs a second of our machines, and of Slurm on as many nodes, as it comes and tuned.
func noops(ctx context.Context, s *settings) (rows []row, err error) {
	rates, err := slurm.Contest{Dir: s.temp, Nodes: s.machines, CPUs: s.slices, Jobs: s.jobs, Turns: s.pairs, Name: "Sluice",
		Run: s.own}.Hold(ctx)
	for _, r := range rates {
		rows = append(rows, row{fmt.Sprintf("no-op jobs a second, %d machines of %d slices: %s", s.machines, s.slices, r.Name), r.Target,
			r.Measured})
	}
	return rows, err
}

// own submits n jobs of one no-op each, in one file, to a head whose machines are ready, and waits for the last commit.
func (s *settings) own(ctx context.Context, n int) (took time.Duration, err error) {
	w, err := s.newWorld()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err = w.join(ctx, s, w.address); err != nil {
		return 0, err
	}
	before, err := w.used()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err = w.head.Send(ctx, slurm.NoOps("noop", n)); err != nil {
		return 0, err
	}
	if err = w.head.Completed(ctx, n); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	after, err := w.used()
	if err != nil {
		return 0, err
	}
	each := func(d time.Duration) float64 { return sample.Milliseconds(d) / float64(n) }
	fmt.Printf("# Sluice: ms of processor time a job: head %.2f, machines %.2f, what they start %.2f\n", each(after.head-before.head),
		each(after.machines-before.machines), each(after.started-before.started))
	claims, err := w.head.Metrics(ctx, "sluice_claims_settled_total")
	if err == nil && int(claims["committed"]) != n {
		err = fmt.Errorf("%d jobs had %v claims that were committed, want one each", n, claims["committed"])
	}
	return took, err
}
