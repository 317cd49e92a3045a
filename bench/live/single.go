package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/sample"
)

// singles submits jobs one after another to an idle daemon and takes apart what each waits for: the answer, the award (the
// market's decision), the start of the process, its end, and the commit.
func singles(ctx context.Context, s *settings, b *book) error {
	for range s.pairs {
		if err := s.single(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) single(ctx context.Context, b *book) (err error) {
	d, err := s.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	var start, ran, whole []float64
	for i := range s.singles {
		name := fmt.Sprintf("single-%d", i)
		submitted := time.Now()
		if err = d.Send(ctx, tiny(name)); err != nil {
			return err
		}
		if err = d.Completed(ctx, i+1); err != nil {
			return err
		}
		done := time.Now()
		var r *connect.Response[pb.GetJobResponse]
		if r, err = d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name})); err != nil {
			return err
		}
		if len(r.Msg.Job.History) != 1 {
			return fmt.Errorf("job %s has %d subjobs, want 1", name, len(r.Msg.Job.History))
		}
		h := r.Msg.Job.History[0]
		// The lease begins when the market decides; the process starts when its supervisor has started it.
		start = append(start, sample.Milliseconds(h.Start.AsTime().Sub(h.PlannedStart.AsTime())))
		ran = append(ran, sample.Milliseconds(h.End.AsTime().Sub(h.Start.AsTime())))
		whole = append(whole, sample.Milliseconds(done.Sub(submitted)))
	}
	for _, v := range [][]float64{start, ran, whole} {
		slices.Sort(v)
	}
	mib, _, err := d.Resident()
	if err != nil {
		return err
	}
	b.add("Single", s.singles, figure{sample.Median(start), "ms-award-to-start"},
		figure{sample.Quantile(start, 95), "ms-award-to-start-p95"},
		figure{sample.Median(ran), "ms-start-to-end"}, figure{sample.Median(whole), "ms-submit-to-commit"}, figure{mib, "daemon-MiB"})
	return nil
}
