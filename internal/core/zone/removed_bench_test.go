package zone_test

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkAfterMachinesThatLeft is BenchmarkRound's step, and an explanation, of a zone of which a thousand machines were a part and were
// removed, beside one that never had any.
func BenchmarkAfterMachinesThatLeft(b *testing.B) {
	for _, left := range []int{0, 1000} {
		g := newGaps(backlog(b, shortest.Policy{}, 1000))
		for i := range left {
			name := fmt.Sprint("pilot-", i)
			for k := range 4 {
				g.out.Reset()
				g.z.Step(g.now, protocol.Message{Kind: protocol.Offer, From: node(name), Epoch: 1, Body: &protocol.SliceView{
					Slice: protocol.Slice{ID: job.SliceID(fmt.Sprint(name, "/", k)), Speed: 1000,
						Capacity: trp.Vector{quantity.Amount((3000 + int64(k)*1000) << 20)}},
					Node: job.NodeID(name), Version: 1, Usable: true}}, &g.out)
			}
			g.now++
			g.z.Step(g.now, protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person},
				Body: &protocol.Removal{Node: job.NodeID(name)}}, &g.out)
		}
		b.Run(fmt.Sprintf("step/%d", left), func(b *testing.B) {
			for b.Loop() {
				if refused, ok := g.open(); ok {
					g.out.Reset()
					g.z.Step(g.now, refused, &g.out)
				}
			}
		})
		b.Run(fmt.Sprintf("explain/%d", left), func(b *testing.B) {
			for b.Loop() {
				g.z.Explain(g.now, "j000007")
			}
		})
	}
}
