package measure_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/batsim"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// known is a published figure and its last digit.
type known struct{ value, digit float64 }

// Batsim's own schedules of 801 jobs on 32 hosts give the figures that are known of them.
func TestPublishedSchedules(t *testing.T) {
	for _, c := range []struct {
		file string
		want map[string]known
	}{
		{"backfill_ref/medium_late_easy_out_jobs.csv.gz", map[string]known{
			measure.Jobs: {801, 1}, measure.Utilization: {.498, .001}, measure.Makespan: {16088.5, .1}, measure.WaitMean: {9.52, .01},
			measure.CompletionMean: {160.93, .01}, measure.SlowdownMean: {1.2409, .0001},
		}},
		{"backfill_ref/medium_late_conservative_out_jobs.csv.gz", map[string]known{
			measure.Jobs: {801, 1}, measure.Utilization: {.498, .001}, measure.Makespan: {16088.5, .1}, measure.WaitMean: {9.85, .01},
			measure.CompletionMean: {161.26, .01}, measure.SlowdownMean: {1.2383, .0001},
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			m := collector(t, []measure.Class{{Name: "host", Count: 32, Weight: 1000}}, measure.Window{})
			type event struct {
				at   quantity.Instant
				rank int // ends come before arrivals and begins
				tell func()
			}
			var events []event
			slot := measure.Slot(0)
			tracetest.Each(t, batsim.Format(), c.file, func(r *trace.Record) {
				s, n := slot, int32(r.Job.GPUs)
				slot++
				submit, start := quantity.Instant(r.At), quantity.Instant(r.Job.Start)
				end := start.Add(r.Job.Duration)
				j := plain(int64(s), "", r.Job.Duration.Seconds())
				j.Slices = int(n)
				p := &measure.Piece{Slot: s, Slices: n, Start: start, End: end, Work: r.Job.Duration, Useful: r.Job.Duration,
					Outcome: job.Done}
				events = append(events,
					event{submit, 1, func() { m.Arrived(submit, s, j) }},
					event{start, 2, func() { m.Began(start, s, 0, n) }},
					event{end, 0, func() { m.Ended(end, p); m.Done(end, s, job.Finished) }})
			})
			slices.SortStableFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
			for _, e := range events {
				e.tell()
			}
			got := m.Finish(events[len(events)-1].at)
			for name, want := range c.want {
				if v := got.Get(name); math.Abs(v-want.value) > want.digit/2+1e-9 {
					t.Errorf("%s is %g, want %g", name, v, want.value)
				}
			}
		})
	}
}
