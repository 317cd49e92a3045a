package index

import (
	"math"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestContenders are those who could use a window of the length, the greatest indexes first and no more than asked for, however they are
// found; agents and those who are held are none.
func TestContenders(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	for _, plainly := range []bool{false, true} {
		w := newWorld(shortest.Policy{}, false)
		if plainly {
			w.x = New(Config{MostClasses: -1}, w.est)
		}
		c := w.class(10, 1000)
		var jobs []*Job
		submit := func(name job.ID, walltime time.Duration, external, paused, volatile bool) {
			spec := &job.Spec{
				Name: name, Queue: "q", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: walltime, MaxFailures: 3,
				Deadline: quantity.Never, External: external,
				Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{1 << 20}}},
			}
			j := &Job{Demand: &fakeJob{spec: spec, submitted: 1, held: paused, volatile: volatile}}
			jobs = append(jobs, j)
			w.x.Activate(j, quantity.Never)
			w.x.Changed(j)
		}
		submit("long", time.Hour, false, false, false)
		submit("short", time.Minute, false, false, false)
		submit("capped", 10*time.Minute, false, false, true)
		submit("agent", time.Second, true, false, false)
		submit("held", time.Second, false, true, false)
		index := func(i int) int64 { return w.est.Index(jobs[i], c) }
		for _, x := range []struct {
			length time.Duration
			n      int
			want   []int64
		}{
			{30 * time.Second, 5, nil},
			{5 * time.Minute, 5, []int64{index(1)}},
			{30 * time.Minute, 5, []int64{index(1), index(2)}},
			{3 * time.Hour, 5, []int64{index(1), index(2), index(0)}},
			{math.MaxInt64, 2, []int64{index(1), index(2)}},
		} {
			if got := w.x.Contenders(now, c, x.length, x.n, []int64{7}); got[0] != 7 || !slices.Equal(got[1:], x.want) {
				t.Errorf("plainly %v: %d for a window of %v are %d, want %d behind what was there", plainly, x.n, x.length, got, x.want)
			}
		}
	}
}
