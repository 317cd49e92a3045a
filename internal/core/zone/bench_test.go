package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// backlog is a zone with n waiting jobs that differ in profile, size and queue.
func backlog(b testing.TB, p policy.Policy, n int) *zone.Zone {
	z, err := zone.New(zone.Config{ID: "z", Policy: p, Horizon: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	var out protocol.Out
	for i := range n {
		s := steps(b, fmt.Sprintf("j%06d", i), int64(1000+i%50*100), 10, int64(1000+i%7*1000))
		s.Queue = fmt.Sprintf("q%d", i%5)
		if i%3 == 0 {
			s.Deadline = quantity.Instant(1e15 + int64(i)*1e9)
		}
		out.Reset()
		z.Step(quantity.Instant(i), protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1,
			Body: &protocol.Adoption{Spec: s, At: quantity.Instant(i)}}, &out)
	}
	return z
}

// gaps offers windows of rotating capacity and length, one after the other, and refuses what is asked for.
type gaps struct {
	z       *zone.Zone
	now     quantity.Instant
	views   []*protocol.SliceView
	version uint64
	out     protocol.Out
	asked   int
}

func newGaps(z *zone.Zone) *gaps {
	g := &gaps{z: z, now: quantity.Instant(1e12)}
	for range 5 * 17 {
		g.views = append(g.views, &protocol.SliceView{Node: "n", Usable: true, Gaps: make([]protocol.Gap, 1)})
	}
	return g
}

// open opens the next window. The views rotate, so that nothing is allocated here and nothing is learned by the processor.
func (g *gaps) open() (protocol.Message, bool) {
	g.version++
	g.now = g.now.Add(time.Minute)
	v := g.views[g.version%uint64(len(g.views))]
	class := int64(g.version % 5)
	v.Slice = protocol.Slice{ID: ids[class], Capacity: trp.Vector{quantity.Amount((3000 + class*1000) << 20)}, Speed: 1000}
	v.Version = g.version
	v.Gaps[0] = protocol.Gap{Start: g.now, End: g.now.Add(time.Duration(60+g.version%17*30) * time.Second), Until: protocol.ForDrain}
	g.out.Reset()
	g.z.Step(g.now, protocol.Message{Kind: protocol.Offer, From: node("n"), Epoch: 1, Body: v}, &g.out)
	for _, m := range g.out.Effects {
		if m.Kind == protocol.Ask {
			g.asked++
			return protocol.Message{Kind: protocol.Refused, From: m.To, Body: &protocol.Refusal{Ask: m.Body.(*protocol.Asking).Ask,
				Slice: m.Body.(*protocol.Asking).Slice}, Job: m.Job}, true
		}
	}
	return protocol.Message{}, false
}

var ids = []job.SliceID{"s0", "s1", "s2", "s3", "s4"}

// BenchmarkRound is one whole market step and the node's refusal: a window opens, every waiting job answers it, the policy
// picks, the winner cuts its piece, a node is asked, and says no. Capacity and length of the window rotate.
func BenchmarkRound(b *testing.B) {
	for _, p := range all.Policies() {
		for _, n := range []int{10, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/waiting=%d", p.Name(), n), func(b *testing.B) {
				takesLong(b, n > 10_000)
				g := newGaps(backlog(b, p, n))
				for range 100 {
					g.round()
				}
				g.asked = 0
				b.ReportAllocs()
				for b.Loop() {
					g.round()
				}
				if g.asked < b.N-1 {
					b.Fatalf("%d windows were answered of %d", g.asked, b.N)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/answer")
			})
		}
	}
}

func (g *gaps) round() {
	if refused, ok := g.open(); ok {
		g.out.Reset()
		g.z.Step(g.now, refused, &g.out)
	}
}

// takesLong skips, with -short, a size that takes seconds or minutes to set up.
func takesLong(b *testing.B, does bool) {
	b.Helper()
	if does && testing.Short() {
		b.Skip("it takes long to set up; run it without -short")
	}
}
