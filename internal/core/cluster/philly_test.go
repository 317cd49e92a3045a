package cluster_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/cluster"
	"sluice.dev/sluice/internal/core/planner"
	"sluice.dev/sluice/internal/core/planner/easy"
	"sluice.dev/sluice/internal/core/planner/fcfs"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/trace"
	"sluice.dev/sluice/internal/edge/trace/philly"
	"sluice.dev/sluice/internal/edge/trace/tracetest"
)

// logged is one job of the trace.
type logged struct {
	at        quantity.Instant
	run, plan time.Duration
	gpus      int32
}

// readPhilly reads the slice of the Philly trace, in order of arrival, and says how many GPUs its work would keep busy.
// The trace has no planned run times: they are drawn 1 to 3 times too long.
func readPhilly(b *testing.B) (jobs []logged, busy float64) {
	s := prng.New(1)
	tracetest.Each(b, philly.Format(), "philly/philly_sep-oct.csv.gz", func(r *trace.Record) {
		jobs = append(jobs, logged{quantity.Instant(r.At), r.Job.Duration, time.Duration(float64(r.Job.Duration) * (1 + 2*s.Float64())), int32(r.Job.GPUs)})
		busy += float64(r.Job.Duration) * float64(r.Job.GPUs)
	})
	slices.SortStableFunc(jobs, func(a, b logged) int { return int(min(max(a.at-b.at, -1), 1)) })
	return jobs, busy / float64(jobs[len(jobs)-1].at-jobs[0].at)
}

// replay runs the jobs on nodes of eight and returns the most that waited. Jobs of up to eight GPUs lie on one node if
// gangs is set; larger ones spread.
func replay(b *testing.B, kind planner.Kind, jobs []logged, nodes int, gangs bool) (waited int64) {
	l := newLoop(b, kind, nodes*8, nil)
	l.backlog = 1 << 62 // arrivals are ours
	l.runs, l.real = make([]*[planner.MaxClasses]time.Duration, len(jobs)), make([]time.Duration, len(jobs))
	for i := 0; i < len(jobs) || len(l.heap) > 0; {
		l.now = quantity.Never
		if i < len(jobs) {
			l.now = jobs[i].at
		}
		if len(l.heap) > 0 {
			l.now = min(l.now, l.heap[0].at)
		}
		for len(l.heap) > 0 && l.heap[0].at == l.now {
			l.c.Step(l.now, cluster.End(l.pop().id, cluster.Finished), &l.out)
			l.events++
		}
		for ; i < len(jobs) && jobs[i].at == l.now; i++ {
			j := &jobs[i]
			l.real[i], l.runs[i] = j.run, &[planner.MaxClasses]time.Duration{j.plan}
			l.c.Step(l.now, cluster.Arrive(cluster.Task{
				ID: cluster.ID(i), Devices: j.gpus, Share: planner.Whole, Spread: !gangs || j.gpus > 8, Fixed: true, Classes: 1, Run: l.runs[i],
			}), &l.out)
			l.events++
		}
		l.plan()
		waited = max(waited, l.c.Counts().Waiting)
	}
	if n := l.c.Counts(); n.Ended[cluster.Finished] != int64(len(jobs)) {
		b.Fatalf("%d of %d jobs finished", n.Ended[cluster.Finished], len(jobs))
	}
	return waited
}

// BenchmarkPhilly is the whole slice at an offered load of .95, with jobs that spread and with jobs that lie on one node.
func BenchmarkPhilly(b *testing.B) {
	for _, kind := range []planner.Kind{fcfs.Kind(), easy.Kind()} {
		for _, gangs := range []bool{false, true} {
			b.Run(kind.Name+map[bool]string{false: "/spread", true: "/gangs"}[gangs], func(b *testing.B) {
				jobs, busy := readPhilly(b)
				nodes := int(busy/.95/8) + 1
				var waited int64
				b.ResetTimer()
				for b.Loop() {
					waited = replay(b, kind, jobs, nodes, gangs)
				}
				b.ReportMetric(float64(waited), "most-waiting")
				b.ReportMetric(float64(nodes*8), "gpus")
			})
		}
	}
}
