package host

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// BenchmarkSubmit has many callers submit at once to a toy gate, over a real journal: what the shell itself costs, with every
// answer durable. Batches form by themselves.
func BenchmarkSubmit(b *testing.B) {
	var inv inventory.Inventory = fixed{}
	h, err := Open(context.Background(), Options{
		DataDir: b.TempDir() + "/data", Machine: "n", Inventory: inv, SnapshotRecords: 1 << 40, SnapshotBytes: 1 << 40,
		Actors: func() actor.Set {
			return actor.Alone("z", "n", &toyGate{toy{step: acceptAll}}, &toyZone{}, &toyNode{})
		},
		Journal:  func(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) },
		Executor: func(Env) (executor.Executor, Files, error) { return &deaf{}, nil, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var n atomic.Int64
	b.SetParallelism(128)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := h.Submit(context.Background(), "", spec(job.ID("job-"+strconv.FormatInt(n.Add(1), 10))), nil); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
