package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fairness"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// BenchmarkRound is one whole market step: a window opens, every waiting job answers it, policy fairness picks, the winner
// cuts its piece and a node is asked. Capacity and length of the window rotate, jobs differ in profile, size and progress.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			z, err := zone.New(zone.Config{ID: "z", Policy: fairness.Policy{}, Horizon: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			var out protocol.Out
			for i := range n {
				s := steps(b, fmt.Sprintf("j%05d", i), int64(1000+i%50*100), 10, int64(1000+i%7*1000))
				s.Queue = fmt.Sprintf("q%d", i%5)
				out.Reset()
				z.Step(quantity.Instant(i), protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1, Spec: s, At: quantity.Instant(i)}, &out)
			}
			now, version := quantity.Instant(1e12), uint64(0)
			view := func(c, d int64) *protocol.SliceView {
				version++
				return &protocol.SliceView{
					Slice: protocol.Slice{ID: "s", Capacity: trp.Vector{quantity.Amount(c << 20)}, Speed: 1000}, Node: "n", Version: version, Usable: true,
					Gaps: []protocol.Gap{{Start: now, End: now.Add(time.Duration(d) * time.Second), Until: protocol.ForDrain}},
				}
			}
			asked := 0
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Minute)
				out.Reset()
				z.Step(now, protocol.Message{Kind: protocol.Offer, Epoch: 1, View: view(3000+int64(version%5)*1000, 60+int64(version%17)*30)}, &out)
				for _, m := range out.Effects {
					if m.Kind == protocol.Ask {
						asked++
						out.Reset()
						z.Step(now, protocol.Message{Kind: protocol.Refused, Ask: m.Ask, Job: m.Job, Slice: job.SliceID("s")}, &out)
						break
					}
				}
			}
			if asked != b.N && asked < b.N-1 {
				b.Fatalf("%d windows were answered of %d", asked, b.N)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/answer")
		})
	}
}
