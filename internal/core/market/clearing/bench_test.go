package clearing

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sizes of windows, and how many instances of each take turns.
var sizes = []struct{ bids, instances int }{{16, 512}, {256, 64}, {1000, 32}, {100_000, 4}}

func BenchmarkClear(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprint(s.bids), func(b *testing.B) {
			all := markets(s.instances, s.bids, true)
			var c Clearer
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Clear(all[i%len(all)])
			}
			perBid(b, s.bids)
		})
	}
}

func BenchmarkClearAndPrices(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprint(s.bids), func(b *testing.B) {
			all := markets(s.instances, s.bids, true)
			var c Clearer
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				bids := all[i%len(all)]
				won, _ := c.Clear(bids)
				c.Prices(bids, won)
			}
			perBid(b, s.bids)
		})
	}
}

// Of chains every price is a clearing of its own.
func BenchmarkPricesOfChains(b *testing.B) {
	const bids = 1000
	all := markets(32, bids, false)
	var c Clearer
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		won, _ := c.Clear(all[i%len(all)])
		c.Prices(all[i%len(all)], won)
	}
	perBid(b, bids)
}

// Many bids that end with the window, in no order.
func BenchmarkClearTies(b *testing.B) {
	for _, s := range sizes[1:] {
		b.Run(fmt.Sprint(s.bids), func(b *testing.B) {
			all := markets(s.instances, s.bids, true)
			for _, bids := range all {
				for i := range bids {
					if i%2 == 0 {
						bids[i].End = 3_600_000
					}
				}
			}
			var c Clearer
			for i := 0; b.Loop(); i++ {
				c.Clear(all[i%len(all)])
			}
			perBid(b, s.bids)
		})
	}
}

// Exclusive over bids of a job that do not overlap: the hard case. gap is what is not proven, in millionths of the bound;
// exact the share of instances solved to the end.
func BenchmarkExclusive(b *testing.B) {
	for _, n := range []int{12, 64, 256, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := markets(32, n, false)
			var c Clearer
			gap, worst, exact := int64(0), int64(0), 0
			for _, bids := range all {
				x := c.Exclusive(bids, nil)
				g := (x.Bound - x.Value) / (x.Bound / 1_000_000)
				gap, worst = gap+g, max(worst, g)
				if x.Exact {
					exact++
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Exclusive(all[i%len(all)], nil)
			}
			b.ReportMetric(float64(gap)/float64(len(all)), "gap-ppm")
			b.ReportMetric(float64(worst), "worst-ppm")
			b.ReportMetric(float64(exact)/float64(len(all)), "exact")
		})
	}
}

// Joint over the windows of one node, all jobs bidding in all of them. regret is what one after another loses, gap what is
// not proven of the joint plan, independent what the bound is below the sum of each window alone; in millionths.
func BenchmarkJoint(b *testing.B) {
	for _, s := range []struct{ windows, bids int }{{2, 64}, {4, 64}, {7, 64}, {4, 256}, {7, 256}} {
		b.Run(fmt.Sprintf("%dx%d", s.windows, s.bids), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(23, 23))
			var all [16][][]Bid
			var c Clearer
			gap, regret, independent := 0.0, 0.0, 0.0
			for i := range all {
				all[i] = node(rng, s.windows, s.bids)
				p := c.Joint(all[i], nil)
				gap += 1e6 * float64(p.Bound-p.Value) / float64(p.Bound)
				regret += 1e6 * float64(p.Regret()) / float64(p.Value)
				independent += 1e6 * float64(p.Independent-p.Bound) / float64(p.Bound)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Joint(all[i%len(all)], nil)
			}
			b.ReportMetric(gap/float64(len(all)), "gap-ppm")
			b.ReportMetric(regret/float64(len(all)), "regret-ppm")
			b.ReportMetric(independent/float64(len(all)), "independent-ppm")
		})
	}
}

func BenchmarkConflict(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprint(s.bids), func(b *testing.B) {
			all := markets(s.instances, s.bids, true)
			ranges := drawn(rand.New(rand.NewPCG(29, 29)), s.bids)
			var c Clearer
			for i := 0; b.Loop(); i++ {
				c.Conflict(all[i%len(all)], ranges)
			}
			perBid(b, s.bids)
		})
	}
}

func perBid(b *testing.B, bids int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bids), "ns/bid")
}
