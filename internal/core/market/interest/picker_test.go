package interest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkWinner is the job that is asked first, found through the index.
func BenchmarkWinner(b *testing.B) {
	for _, p := range all.Policies() {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/waiting=%d", p.Name(), n), func(b *testing.B) {
				if n > 10_000 && testing.Short() {
					b.Skip("it takes long to set up; run it without -short")
				}
				now, board := quantity.Instant(1e15), window.NewBoard(time.Second)
				est := index.NewEstimator(p, time.Hour, false, board)
				x := index.New(index.Config{ByQueue: p.Motion() == policy.WithinQueue}, est)
				for class := range 5 {
					c, _ := board.ClassOf(&protocol.Slice{Capacity: trp.Vector{quantity.Amount((5 + class) << 30)}, Speed: 1000})
					x.Cover(c)
				}
				for i := range n {
					d := &markettest.Job{Of: markettest.Spec(b, i), Came: quantity.Instant(i)}
					d.Of.Queue = fmt.Sprint("q", i%5)
					j := &index.Job{Demand: d}
					x.Activate(j, quantity.Never)
					x.Changed(j)
				}
				x.Refresh(now)
				first := picker{policy: p, est: est, index: x}
				answered := 0
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					pick := first.noPick()
					first.best(now, board.Classes()[i%5], window.Of(0, now, now.Add(time.Duration(60+i%17*30)*time.Second)), nil, pick)
					if pick.job != nil {
						answered++
					}
				}
				if answered == 0 {
					b.Fatal("nobody is interested")
				}
			})
		}
	}
}

// TestTheFirstIsWhoComparingEverybodyFinds: of jobs that could use a window, whatever they have had by now.
func TestTheFirstIsWhoComparingEverybodyFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all.Policies()).Draw(t, "policy")
		now, board := quantity.Instant(1e15), window.NewBoard(time.Second)
		est := index.NewEstimator(p, time.Hour, false, board)
		x := index.New(index.Config{ByQueue: p.Motion() == policy.WithinQueue}, est)
		c, _ := board.ClassOf(&protocol.Slice{Capacity: trp.Vector{7 << 30}, Speed: 1000})
		x.Cover(c)
		var jobs []*index.Job
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			d := &markettest.Job{Of: markettest.Spec(t, rapid.IntRange(0, 99).Draw(t, "spec")), Came: quantity.Instant(i),
				Had: rapid.Int64Range(0, 9000).Draw(t, "had")}
			d.Of.Name, d.Of.Parallelism = job.ID(fmt.Sprint("j", i)), 2
			if rapid.Bool().Draw(t, "runs") {
				d.Running, d.Began = 1, []quantity.Instant{now.Add(-time.Duration(rapid.IntRange(0, 9).Draw(t, "since")) * time.Second)}
			}
			j := &index.Job{Demand: d}
			x.Activate(j, quantity.Never)
			x.Changed(j)
			jobs = append(jobs, j)
		}
		x.Refresh(now)
		first := picker{policy: p, est: est, index: x}
		for range 3 {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "later")) * time.Second)
			w := window.Of(0, now, now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "length"))*time.Second))
			var want candidate
			for _, j := range jobs {
				if piece, r := est.Fit(j, c, now, w.End()); r.Why == atomizer.Interested {
					if k := est.Candidate(now, j, c, w.End(), &piece); want.job == nil || p.Compare(&k, &want.Candidate) < 0 {
						want = candidate{k, j}
					}
				}
			}
			pick := first.noPick()
			if first.best(now, c, w, nil, pick); pick.job != want.job {
				t.Fatalf("first is %+v, want %+v", pick, want)
			}
		}
	})
}
