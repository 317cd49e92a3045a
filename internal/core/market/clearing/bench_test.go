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

// Exclusive over bids of a job that do not overlap. "hour": many jobs for the time of one window, four bids each. "day": a
// long window with hardly more jobs than places, eight bids of nearly one score each, where the rule decides everything.
// gap is what is not proven, in millionths of the bound; exact the share of instances solved to the end; half the share
// of the bound that the plan of twoPhase, the one with the proof, has by itself.
func BenchmarkExclusive(b *testing.B) {
	for _, kind := range []struct {
		name string
		draw func(rng *rand.Rand, n int) []Bid
	}{
		{"hour", func(rng *rand.Rand, n int) []Bid { return market(rng, n, false) }},
		{"day", scarce},
	} {
		for _, n := range []int{12, 64, 256, 1000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(uint64(n), 31))
				var all [32][]Bid
				var c Clearer
				gap, worst, exact, half := 0.0, 0.0, 0.0, 0.0
				for i := range all {
					all[i] = kind.draw(rng, n)
					x := c.Exclusive(all[i], nil)
					g := 1e6 * float64(x.Bound-x.Value) / float64(x.Bound)
					gap, worst = gap+g, max(worst, g)
					if x.Exact {
						exact++
					}
					c.contest.set(c.rows, jobs(all[i]))
					c.contest.phases()
					for _, j := range c.contest.keep {
						half += float64(c.rows[j].weight) / float64(x.Bound)
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					c.Exclusive(all[i%len(all)], nil)
				}
				b.ReportMetric(gap/float64(len(all)), "gap-ppm")
				b.ReportMetric(worst, "worst-ppm")
				b.ReportMetric(exact/float64(len(all)), "exact")
				b.ReportMetric(half/float64(len(all)), "half")
			})
		}
	}
}

// scarce draws n bids, eight a job, in a window so long that most jobs could have a place.
func scarce(rng *rand.Rand, n int) []Bid {
	window := int64(n) * 86_400
	bids := make([]Bid, n)
	score := int64(0)
	for i := range bids {
		length := min(120_000+rng.Int64N(1_680_000), window/2)
		start := rng.Int64N(window - length)
		if i%8 == 0 {
			score = 300_000 + rng.Int64N(700_000)
		}
		bids[i] = Bid{Start: start, End: start + length, Weight: (score + rng.Int64N(100_000)) * length, Job: int32(i / 8),
			ID: int32(i % 8)}
	}
	return bids
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
