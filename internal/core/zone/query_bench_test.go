package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkQueries is what people ask of a zone with many waiting jobs on a few full slices: each question by itself, as long as it
// keeps the loop from everything else.
func BenchmarkQueries(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		takesLong(b, n > 10_000)
		z := backlog(b, fair.Policy{}, n)
		now, out := quantity.Instant(1e12), protocol.Out{}
		for i := range 8 {
			z.Step(now, protocol.Message{Kind: protocol.Offer, From: node("n"), Epoch: 1, Body: &protocol.SliceView{
				Slice: protocol.Slice{ID: job.SliceID(fmt.Sprint("s", i)), Capacity: trp.Vector{quantity.Amount((512 + i%2*64) << 20)},
					Speed: 1000}, Node: "n", Version: 1, Usable: true,
				Gaps: []protocol.Gap{{Start: now, End: quantity.Never}},
			}}, &out)
		}
		name := job.ID(fmt.Sprintf("j%06d", n/2))
		stranger := steps(b, "stranger", 1000, 10, 1000)
		for what, ask := range map[string]func(){
			"page": func() { z.Page(now, status.JobQuery{Limit: 100}) },
			"deep": func() {
				z.Page(now, status.JobQuery{Limit: 100, Before: status.JobKey{Submitted: quantity.Instant(n / 2)}})
			},
			"none": func() {
				z.Page(now, status.JobQuery{Limit: 100, Queue: "q1", States: status.JobStates(0).With(job.Failed)})
			},
			"job":     func() { z.Job(now, name) },
			"explain": func() { z.Explain(now, name) },
			"dryrun":  func() { z.DryRun(now, stranger) },
			"windows": func() { z.Windows(now) },
			"queues":  func() { z.Queues(now) },
		} {
			b.Run(fmt.Sprintf("%s/jobs=%d", what, n), func(b *testing.B) {
				longest := time.Duration(0)
				for b.Loop() {
					begin := time.Now()
					ask()
					longest = max(longest, time.Since(begin))
				}
				b.ReportMetric(float64(longest.Microseconds()), "us-longest")
			})
		}
	}
}
