package place_test

import (
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// BenchmarkPlace is one task that ends and one that arrives, on nodes of eight GPUs that are cut into 2 + 3 + 3 slices or
// whole, with all but a tenth of them busy and a queue that is short.
func BenchmarkPlace(b *testing.B) {
	for _, kind := range append(scored(), place.Random()) {
		for _, nodes := range []int{16, 128, 1024} {
			b.Run(fmt.Sprintf("%s/nodes=%d", kind.Name, nodes), func(b *testing.B) {
				c := planner.Cluster{Classes: []planner.Class{
					{Name: "1g", Weight: 142, Memory: 10}, {Name: "3g", Weight: 428, Memory: 40}, {Name: "whole", Weight: 1000, Memory: 80},
				}}
				for i := range nodes {
					n := planner.Node{Devices: slices.Repeat([]uint8{2}, 8)}
					if i%2 == 0 {
						n.Devices = slices.Repeat([]uint8{1, 1, 0}, 8)
					}
					c.Nodes = append(c.Nodes, n)
				}
				task := func(id planner.ID, s *prng.Stream) planner.Task {
					return planner.Task{ID: id, Devices: 1, Share: planner.Whole, Classes: []uint32{7, 6, 6, 4}[s.IntN(4)]}
				}
				s := prng.New(1)
				p, err := kind.New(planner.Options{Cluster: c, Typical: []planner.Typical{{Task: task(0, &s), Count: 1},
					{Task: task(1, &s), Count: 2}}})
				if err != nil {
					b.Fatal(err)
				}
				var out planner.Out
				live := planner.ID(nodes * 16 * 9 / 10)
				for id := range live {
					p.Arrive(0, task(id, &s))
				}
				p.Plan(0, &out)
				b.ReportAllocs()
				for b.Loop() {
					out.Reset()
					id := planner.ID(s.IntN(int(live)))
					p.Leave(0, id)
					p.Arrive(0, task(id, &s))
					p.Plan(0, &out)
				}
			})
		}
	}
}
