package clearing

import (
	"math/rand/v2"
	"testing"
)

// ruled draws bids that Conflict accepts: those of a job share an instant, or, where chains are wanted, some follow each other.
func ruled(rng *rand.Rand, n int, span int64, chains bool) []Bid {
	var bids []Bid
	for job := int32(0); len(bids) < n; job++ {
		meet := rng.Int64N(span)
		end := int64(0)
		for id := range 1 + rng.Int32N(4) {
			start := max(0, meet-rng.Int64N(span/3+1))
			stop := meet + 1 + rng.Int64N(span/3+1)
			if chains && job%2 == 0 {
				start = end + rng.Int64N(3)
				stop = start + 1 + rng.Int64N(span/4+1)
				end = stop
			}
			bids = append(bids, Bid{Start: start, End: stop, Weight: rng.Int64N(20), Job: job, ID: id})
		}
	}
	rng.Shuffle(len(bids), func(i, j int) { bids[i], bids[j] = bids[j], bids[i] })
	return bids
}

// Prices equal those of clearing again without the job, here against an exhaustive search, and lie between 0 and the weight.
func TestPricesEqualClearingAgain(t *testing.T) {
	var c, d Clearer
	rng := rand.New(rand.NewPCG(7, 7))
	priced, chained := 0, 0
	check := func(bids []Bid, clear func(*Clearer, []Bid) ([]int32, int64), best func([]Bid) int64) {
		won, value := clear(&c, bids)
		prices := c.Prices(bids, won)
		if len(prices) != len(won) {
			t.Fatalf("%d prices for %d winners", len(prices), len(won))
		}
		paid, weight, times := map[int32]int64{}, map[int32]int64{}, map[int32]int{}
		for k, i := range won {
			b := bids[i]
			if prices[k] < 0 || prices[k] > b.Weight {
				t.Fatalf("bid %+v pays %d of %v", b, prices[k], bids)
			}
			paid[b.Job] += prices[k]
			weight[b.Job] += b.Weight
			times[b.Job]++
		}
		for job := range paid {
			var others []Bid
			for _, b := range bids {
				if b.Job != job {
					others = append(others, b)
				}
			}
			if want := best(others) - (value - weight[job]); paid[job] != want {
				t.Fatalf("job %d pays %d; clearing again without it says %d; bids %+v, won %v", job, paid[job], want, bids, won)
			}
			priced++
			if times[job] > 1 {
				chained++
			}
		}
	}
	plain := func(c *Clearer, bids []Bid) ([]int32, int64) { return c.Clear(bids) }
	search := func(bids []Bid) int64 { return brute(bids, disjoint) }
	again := func(bids []Bid) int64 {
		_, value := d.Clear(bids)
		return value
	}
	for i := range 8000 {
		check(ruled(rng, 1+rng.IntN(8), 12, i%2 == 0), plain, search)
	}
	for i := range 200 {
		check(ruled(rng, 150+rng.IntN(200), 400, i%2 == 0), plain, again)
	}
	for range 4 {
		check(market(rng, 2000, true), plain, again)
	}
	if priced < 10_000 || chained < 500 {
		t.Errorf("%d prices were compared, %d of jobs with several bids; too few to say anything", priced, chained)
	}
}

// The second price of textbooks: one item, and the winner pays what the next would have given.
func TestPriceOfOneItem(t *testing.T) {
	var c Clearer
	bids := []Bid{{End: 5, Weight: 7}, {End: 5, Weight: 9, Job: 1}, {End: 5, Weight: 8, Job: 1, ID: 1}, {End: 4, Weight: 3, Job: 2}}
	won, _ := c.Clear(bids)
	if prices := c.Prices(bids, won); len(won) != 1 || won[0] != 1 || prices[0] != 7 {
		t.Errorf("won %v at %v; want bid 1 at 7", won, prices)
	}
	// What is fixed is not priced, and takes its time out of the market.
	won, _, _ = c.Around(append(bids, Bid{Start: 5, End: 9, Weight: 1, Job: 3}, Bid{Start: 8, End: 9, Weight: 4, Job: 4}), []int32{4})
	if prices := c.Prices(append(bids, Bid{}, Bid{}), won); len(won) != 2 || prices[0] != 7 || prices[1] != 0 {
		t.Errorf("won %v at %v; want 7 and nothing", won, prices)
	}
}

// A chain's price is divided by weight, to the last unit.
func TestPriceOfAChain(t *testing.T) {
	var c Clearer
	bids := []Bid{{End: 3, Weight: 5}, {Start: 3, End: 6, Weight: 2, ID: 1}, {Start: 6, End: 9, Weight: 4, ID: 2},
		{Start: 1, End: 8, Weight: 7, Job: 1}}
	won, value := c.Clear(bids)
	prices := c.Prices(bids, won)
	if value != 11 || len(prices) != 3 || prices[0] != 3 || prices[1] != 1 || prices[2] != 3 {
		t.Errorf("won %v worth %d at %v; want 11 at 3, 1, 3", won, value, prices)
	}
}

func TestPricesOfAnotherClearing(t *testing.T) {
	bids := []Bid{{End: 3, Weight: 5}}
	for name, call := range map[string]func(c *Clearer){
		"nothing cleared":  func(c *Clearer) { c.Prices(bids, []int32{0}) },
		"exclusive":        func(c *Clearer) { c.Prices(bids, c.Exclusive(bids, nil).Won) },
		"other bids":       func(c *Clearer) { won, _ := c.Clear(bids); c.Prices(append(bids, bids...), won) },
		"not what has won": func(c *Clearer) { c.Clear(append(bids, bids...)); c.Prices(append(bids, bids...), []int32{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call(&Clearer{})
		})
	}
}
