package clearing

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// surplus of a job is what it has won is truly worth to it, less what it pays by the prices of the bids as declared.
func surplus(c *Clearer, declared, truth []Bid, job int32) int64 {
	won, _ := c.Clear(declared)
	won = slices.Clone(won)
	sum := int64(0)
	for k, price := range c.Prices(declared, won) {
		if declared[won[k]].Job == job {
			sum += truth[won[k]].Weight - price
		}
	}
	return sum
}

// TestTruthIsDominantInOneShot: one window, values that do not depend on what else happens, prices of Vickrey, Clarke and
// Groves. Whatever the others bid, no declaration of weights serves a job better than the true one: every combination of
// weights for its bids is tried, 0 (not to bid) among them, with chains of bids and without.
func TestTruthIsDominantInOneShot(t *testing.T) {
	var c Clearer
	rng := rand.New(rand.NewPCG(3, 14))
	lies, mattered := 0, 0
	for round := range 1500 {
		truth := ruled(rng, 2+rng.IntN(6), 10, round%2 == 0)
		job := truth[0].Job
		honest := surplus(&c, truth, truth, job)
		if honest < 0 {
			t.Fatalf("job %d loses %d by the truth in %+v", job, -honest, truth)
		}
		own := []int{}
		for i := range truth {
			if truth[i].Job == job {
				own = append(own, i)
			}
		}
		if len(own) > 4 {
			continue
		}
		levels := []int64{0, 1, 3, 7, 1000}
		declared := slices.Clone(truth)
		for code, n := 0, power(len(levels), len(own)); code < n; code++ {
			for k, rest := 0, code; k < len(own); k, rest = k+1, rest/len(levels) {
				declared[own[k]].Weight = levels[rest%len(levels)]
			}
			got := surplus(&c, declared, truth, job)
			if got > honest {
				t.Fatalf("job %d has %d by the truth and %d by declaring %+v, where %+v is true", job, honest, got, declared, truth)
			}
			lies++
			if got < honest {
				mattered++
			}
		}
	}
	if mattered < 5000 {
		t.Errorf("%d lies, of which %d cost something: too few to say anything", lies, mattered)
	}
}

func power(base, n int) int {
	out := 1
	for range n {
		out *= base
	}
	return out
}

// What follows is where the same prices leave something to gain: each shows a lie that pays.

// TestTwoWhoColludePayNothing: two jobs with bids that exclude each other's rival together drive each other's price to
// nothing, though alone each would pay. VCG is proof against one liar, not against two.
func TestTwoWhoColludePayNothing(t *testing.T) {
	truth := []Bid{{0, 5, 6, 0, 0, 0}, {5, 10, 6, 1, 1, 0}, {0, 10, 10, 2, 2, 0}}
	var c Clearer
	honest := surplus(&c, truth, truth, 0) + surplus(&c, truth, truth, 1)
	declared := slices.Clone(truth)
	declared[0].Weight, declared[1].Weight = 10, 10
	if got := surplus(&c, declared, truth, 0) + surplus(&c, declared, truth, 1); honest != 4 || got != 12 {
		t.Errorf("they have %d by the truth and %d together, want 4 and 12", honest, got)
	}
}

// TestOneJobAsTwoPaysLess: a job with a chain of two bids that enters them as two jobs pays less for them: the prices of parts
// do not add up to the price of the whole. A queue that is priced job by job can split its work.
func TestOneJobAsTwoPaysLess(t *testing.T) {
	whole := []Bid{{0, 5, 8, 0, 0, 0}, {5, 10, 8, 0, 1, 1}, {0, 10, 10, 1, 2, 0}}
	parts := slices.Clone(whole)
	parts[1].Job, parts[2].Job = 2, 1
	var c Clearer
	honest := surplus(&c, whole, whole, 0)
	if split := surplus(&c, parts, parts, 0) + surplus(&c, parts, parts, 2); honest != 6 || split != 12 {
		t.Errorf("as one job it has %d, as two %d; want 6 and 12", honest, split)
	}
}

// TestFirstPricesRewardShading: where a job pays its own bid it does better to bid just over the next one.
func TestFirstPricesRewardShading(t *testing.T) {
	first := func(own int64) int64 {
		var c Clearer
		bids := []Bid{{0, 10, own, 0, 0, 0}, {0, 10, 6, 1, 1, 0}}
		won, _ := c.Clear(bids)
		if bids[won[0]].Job != 0 {
			return 0
		}
		return 10 - own
	}
	if honest, shaded := first(10), first(7); honest != 0 || shaded != 3 {
		t.Errorf("by the truth it has %d, shaded %d; want 0 and 3", honest, shaded)
	}
}

// TestExclusivityBreaksPrices: where a job may win one bid only, the plan is not an interval schedule any more and clearing may
// end at less than the best (Bound). Prices that take the plan that was found for the best one, here the plain one, make a job
// pay for more than it does to others.
func TestExclusivityBreaksPrices(t *testing.T) {
	// Two bids of job 0 in a row, work that it can do once; job 1 wants the whole.
	bids := []Bid{{0, 4, 6, 0, 0, 0}, {4, 8, 6, 0, 1, 0}, {2, 7, 7, 1, 2, 0}}
	var c Clearer
	won, value := c.Clear(bids)
	if len(won) != 2 || value != 12 {
		t.Fatalf("the plain plan is %v, worth %d", won, value)
	}
	// True value to job 0 of having won twice the same work is 6, and it pays 7.
	paid := int64(0)
	for _, p := range c.Prices(bids, won) {
		paid += p
	}
	one := slices.Clone(bids)
	one[1].Weight = 0 // it hides a variant that is truly worth 6 to it
	if x := c.Exclusive(bids, nil); x.Value != 7 || paid != 7 {
		t.Errorf("exclusive plans are worth %d, and the plain prices are %d; want 7 and 7", x.Value, paid)
	}
	if honest, hidden := 6-paid, surplus(&c, one, one, 0); hidden <= honest {
		t.Errorf("hiding a variant is worth %d, the truth %d", hidden, honest)
	}
}

// TestRepeatedRoundsRewardWaiting: two windows one after another, one rival that comes only to the first. Prices are right in
// each, and still it pays not to say the truth in the first: the second is free.
func TestRepeatedRoundsRewardWaiting(t *testing.T) {
	var c Clearer
	rival := Bid{0, 10, 8, 1, 1, 0}
	first := func(own int64) int64 {
		truth := []Bid{{0, 10, 10, 0, 0, 0}, rival}
		declared := slices.Clone(truth)
		declared[0].Weight = own
		return surplus(&c, declared, truth, 0)
	}
	second := surplus(&c, []Bid{{0, 10, 10, 0, 0, 0}}, []Bid{{0, 10, 10, 0, 0, 0}}, 0)
	if honest, waits := first(10), first(0)+second; honest != 2 || waits != 10 {
		t.Errorf("by the truth it has %d, by waiting %d; want 2 and 10", honest, waits)
	}
}
