package twin_test

import (
	"context"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim"
)

// BenchmarkSim simulates a day of three jobs on two slices: about 300 thousand units in windows of at most ten minutes.
func BenchmarkSim(b *testing.B) {
	jobs := []arrival{
		{time.Second, spec(b, "a", job.Items, 300_000, 200*time.Millisecond)},
		{time.Second, spec(b, "b", job.Steps, 200_000, 300*time.Millisecond)},
		{time.Second, spec(b, "c", job.Rigid, 1, time.Hour)},
	}
	build := build(b)
	steps := uint64(0)
	for b.Loop() {
		o := simOptions(build())
		o.Start = 1
		s, err := sim.New(o)
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range jobs {
			s.At(quantity.Instant(a.after), protocol.Message{
				Kind: protocol.Submit, To: protocol.Address{Role: protocol.Gate}, Body: &protocol.Submission{Request: a.request(),
					Spec: a.spec, Digest: a.request()}, Job: a.spec.Name,
			})
		}
		if err := s.Run(context.Background(), quantity.Instant(24*time.Hour)); err != nil {
			b.Fatal(err)
		}
		steps += s.Steps()
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
