package zone

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkVerify is what the scheduler does to one variant that somebody declares: all of it is verified again, its score
// calibrated by its job's record and put together with the system's. 1,000 jobs differ in profile, progress and trust; their
// four variants each were proposed for a window of their own.
func BenchmarkVerify(b *testing.B) {
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Market: &market.Config{}})
	if err != nil {
		b.Fatal(err)
	}
	const jobs = 1000
	now := quantity.Instant(1e15)
	end := now.Add(40 * time.Minute)
	l := &lot{slice: &slice{class: &class{capacity: trp.Vector{20 << 30}, pace: 1000}}, full: true}
	w := &window{id: 1, start: now, end: end}
	type bid struct {
		st *state
		v  protocol.Variant
	}
	var bids []bid
	for i := range jobs {
		s := benchSpec(b, i)
		st := &state{q: z.queue("q")}
		st.Spec, st.Job, st.Queue, st.Submitted = s, s.Name, "q", now.Add(-time.Duration(i)*time.Minute)
		st.Committed = job.Ranges{{From: 0, To: int64(i%20) * 100}}
		if i%20 == 0 {
			st.Committed = nil
		}
		st.Learned.Trust = protocol.Trust{Error: int64(i%7) * 50_000, History: 400_000, Seen: 10}
		v := st.view()
		for _, p := range atomizer.Propose(&v, z.window(st, l.slice.class, now, end), 4, now, nil) {
			p.Window = 1
			bids = append(bids, bid{st, p})
		}
	}
	if len(bids) < 2*jobs {
		b.Fatalf("only %d variants of %d jobs", len(bids), jobs)
	}
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		z.tenders = z.tenders[:0]
		from := 0
		for i := range bids {
			if i > 0 && bids[i].st != bids[i-1].st {
				from = len(z.tenders)
			}
			if why := z.enter(now, bids[i].st, l, w, &bids[i].v, nil, from); why != "" {
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

func benchSpec(tb testing.TB, i int) *job.Spec {
	s := &job.Spec{
		Name: job.ID(fmt.Sprintf("j%05d", i)), Queue: "q", Kind: job.Steps, Total: int64(5000 + i%50*100), PerUnit: time.Second, Grid: 10, Parallelism: 1,
		Restore: time.Second, Checkpoint: time.Second, TauMin: 20 * time.Second, Deadline: quantity.Never, Worth: job.DefaultWorth, Theta: 10_000,
	}
	if i%3 == 0 {
		s.Deadline = quantity.Instant(1e15).Add(time.Duration(i) * time.Minute)
	}
	s.Profile.Form = trp.Phases
	for p := range int64(5) {
		s.Profile.Phases = append(s.Profile.Phases, trp.Phase{UpTo: s.Total * (p + 1) / 5, Mean: quantity.Amount(4+(int64(i)+p)%5) << 30, SD: 200 << 20})
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		tb.Fatal(err)
	}
	return s
}
