package rigid

import (
	"context"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/philly"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
	"sluice.dev/sluice/internal/lab/workload"
)

// readPhilly reads the slice of the Philly trace, in order of arrival, and says how many GPUs its work would keep busy.
// The trace has no planned run times: they are drawn 1 to 3 times too long.
func readPhilly(b *testing.B) (jobs list, busy float64) {
	s := prng.New(1)
	tracetest.Each(b, philly.Format(), "philly/philly_sep-oct.csv.gz", func(r *trace.Record) {
		run := r.Job.Duration
		jobs = append(jobs, workload.Job{
			Kind: job.Rigid, Slices: int(r.Job.GPUs), Units: 1, Grid: 1, Parallelism: 1, Submit: quantity.Instant(r.At),
			Work: run, Declared: time.Duration(float64(run) * (1 + 2*s.Float64())), Memory: workload.Memory{Phases: []trp.Phase{{UpTo: 1}}},
		})
		busy += float64(run) * float64(r.Job.GPUs)
	})
	slices.SortStableFunc(jobs, func(a, b workload.Job) int { return int(min(max(a.Submit-b.Submit, -1), 1)) })
	return jobs, busy / float64(jobs[len(jobs)-1].Submit-jobs[0].Submit)
}

// BenchmarkPhilly replays the whole slice at an offered load of .95 on nodes of eight devices: jobs spread, or those of up to
// eight lie on one node (gangs).
func BenchmarkPhilly(b *testing.B) {
	for _, kind := range []planner.Kind{fcfs.Kind(), easy.Kind()} {
		for _, gangs := range []bool{false, true} {
			b.Run(kind.Name+map[bool]string{false: "/spread", true: "/gangs"}[gangs], func(b *testing.B) {
				jobs, busy := readPhilly(b)
				m := cluster.Machines{Classes: []planner.Class{{Name: "gpu", Weight: 1000}}}
				for range int(busy/.95/8) + 1 {
					m.Nodes = append(m.Nodes, planner.Node{Devices: make([]uint8, 8)})
				}
				events := uint64(0)
				b.ResetTimer()
				for b.Loop() {
					p, err := kind.New(planner.Options{Cluster: m})
					if err != nil {
						b.Fatal(err)
					}
					left := slices.Clone(jobs)
					r, err := New(Options{Actor: cluster.New(m, p), Machines: m, Source: &left,
						Task: func(j *workload.Job, t *cluster.Task) error {
							t.Devices, t.Share, t.Classes, t.Run[0] = int32(j.Slices), planner.Whole, 1, j.Declared
							t.Spread = !gangs || t.Devices > 8
							return nil
						}})
					if err != nil {
						b.Fatal(err)
					}
					if over, err := r.Run(context.Background(), quantity.Never); !over || err != nil || r.Live() != 0 {
						b.Fatalf("over %v with %d jobs left: %v", over, r.Live(), err)
					}
					events = r.Events()
				}
				b.ReportMetric(float64(len(m.Nodes)*8), "gpus")
				b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			})
		}
	}
}
