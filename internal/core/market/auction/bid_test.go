package auction

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// BenchmarkVerify is what the scheduler does to one variant that somebody declares: all of it is verified again, its score
// calibrated by its job's record and put together with the system's. 1,000 jobs differ in profile, progress and trust; their
// four variants each were proposed for a window of their own.
func BenchmarkVerify(b *testing.B) {
	c := Config{}.WithDefaults()
	world := newWorld(fifo.Policy{}, c)
	x := world.x
	const jobs = 1000
	now := quantity.Instant(1e15)
	end := now.Add(40 * time.Minute)
	o := &agents.Offer{Slice: world.slice(20, 1000), Full: true}
	w := window.Of(1, now, end)
	type proposed struct {
		j *index.Job
		v protocol.Variant
	}
	var list []proposed
	for i := range jobs {
		d := &markettest.Job{Of: markettest.Spec(b, i), Came: now.Add(-time.Duration(i) * time.Minute)}
		d.Committed = job.Ranges{{From: 0, To: int64(i%20) * 100}}
		if i%20 == 0 {
			d.Committed = nil
		}
		d.Learned.Trust = protocol.Trust{Error: int64(i%7) * 50_000, History: 400_000, Seen: 10}
		j := &index.Job{Demand: d}
		v := j.View()
		for _, p := range atomizer.Propose(&v, world.parts.Est.Window(j, o.Slice.Class(), now, end), 4, now, nil) {
			p.Window = 1
			list = append(list, proposed{j, p})
		}
	}
	if len(list) < 2*jobs {
		b.Fatalf("only %d variants of %d jobs", len(list), jobs)
	}
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		x.plan.bids = x.plan.bids[:0]
		from := 0
		for i := range list {
			if i > 0 && list[i].j != list[i-1].j {
				from = len(x.plan.bids)
			}
			if why := x.enter(now, 0, list[i].j, o, w, &list[i].v, nil, from, false); why != "" {
				refused++
			}
			if n++; n == b.N {
				break
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvariants/s")
	if refused > 0 {
		b.Fatalf("%d variants were refused", refused)
	}
}

// TestPriorityCounts: a hundred points of priority double what a bid weighs, and between the hundreds it grows evenly.
func TestPriorityCounts(t *testing.T) {
	c := Config{}.WithDefaults()
	world := newWorld(fifo.Policy{}, c)
	x := world.x
	now := quantity.Instant(1e15)
	o, w := &agents.Offer{Slice: world.slice(20, 1000), Full: true}, window.Of(1, now, now.Add(40*time.Minute))
	for _, priority := range []int32{-1000, -500, -250, -100, -1, 0, 1, 50, 100, 101, 499, 500, 10_000} {
		d := &markettest.Job{Of: markettest.Spec(t, 1), Came: now.Add(-time.Hour)}
		d.Of.Priority = priority
		x.plan.bids = x.plan.bids[:0]
		x.enterRival(now, 0, &index.Job{Demand: d}, o, w, false)
		if len(x.plan.bids) == 0 {
			t.Fatal("nothing is bid")
		}
		for i := range x.plan.bids {
			b := &x.plan.bids[i]
			points := max(-index.MostPrecedence, min(index.MostPrecedence, float64(priority)))
			hundreds := math.Floor(points / 100)
			want := math.Exp2(hundreds) * (1 + points/100 - hundreds) * float64(score.Weight(b.total, b.length(w.End()), c.PerTime))
			if got := float64(b.weight); math.Abs(got-want) > want/50+2 {
				t.Errorf("at priority %d a bid weighs %v, want %v", priority, got, want)
			}
		}
	}
}
