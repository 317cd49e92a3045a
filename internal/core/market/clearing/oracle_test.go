package clearing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

// brute is the greatest weight of any set of sound bids in which every two may stand together.
func brute(bids []Bid, together func(a, b *Bid) bool) int64 {
	var chosen []*Bid
	var try func(i int) int64
	try = func(i int) int64 {
		if i == len(bids) {
			return 0
		}
		best := try(i + 1)
		b := &bids[i]
		if b.sound() && !slices.ContainsFunc(chosen, func(a *Bid) bool { return !together(a, b) }) {
			chosen = append(chosen, b)
			best = max(best, b.Weight+try(i+1))
			chosen = chosen[:len(chosen)-1]
		}
		return best
	}
	return try(0)
}

// disjoint and onePerJob are the rules of Clear and of Exclusive.
func disjoint(a, b *Bid) bool  { return !a.overlaps(b) }
func onePerJob(a, b *Bid) bool { return a.Job != b.Job && !a.overlaps(b) }

// verify fails unless won are sound bids of this weight (fixed ones may be worth nothing), in order of start, every two of
// which may stand together.
func verify(t rapid.TB, bids []Bid, won []int32, value int64, together func(a, b *Bid) bool) {
	t.Helper()
	sum := int64(0)
	for k, i := range won {
		if !bids[i].fits() {
			t.Fatalf("bid %d won and is unsound: %+v", i, bids[i])
		}
		if k > 0 && bids[won[k-1]].Start >= bids[i].Start {
			t.Fatalf("winners are not in order of start: %v of %+v", won, bids)
		}
		for _, j := range won[:k] {
			if !together(&bids[j], &bids[i]) {
				t.Fatalf("bids %d and %d both won: %+v and %+v", j, i, bids[j], bids[i])
			}
		}
		sum += bids[i].Weight
	}
	if sum != value {
		t.Fatalf("winners %v weigh %d; said %d", won, sum, value)
	}
}

// drawBids draws up to most bids, unsound ones among them, on few instants so that they touch, tie and overlap.
func drawBids(t *rapid.T, most int, span int64) []Bid {
	n := rapid.IntRange(0, most).Draw(t, "bids")
	bids := make([]Bid, n)
	for i := range bids {
		start := rapid.Int64Range(-1, span).Draw(t, "start")
		bids[i] = Bid{
			Start: start, End: start + rapid.Int64Range(-1, span/2).Draw(t, "length"), Weight: rapid.Int64Range(0, 9).Draw(t, "weight"),
			Job: rapid.Int32Range(0, 4).Draw(t, "job"), ID: int32(i), Work: rapid.Int32Range(0, 2).Draw(t, "work"),
		}
	}
	return bids
}

// shuffled is the same bids in another order.
func shuffled(t *rapid.T, bids []Bid) []Bid {
	return rapid.Permutation(bids).Draw(t, "order")
}

// chosen are the bids themselves.
func chosen(bids []Bid, won []int32) []Bid {
	out := make([]Bid, len(won))
	for k, i := range won {
		out[k] = bids[i]
	}
	return out
}

// market draws bids as a market sees them: n bids, four a job, in a window of an hour of milliseconds, each from 2 to 30
// minutes long, with weights of score x duration, in no order. If they overlap, the four bids of a job share an instant.
func market(rng *rand.Rand, n int, overlap bool) []Bid {
	const window = 3_600_000
	bids := make([]Bid, n)
	var meet int64
	for i := range bids {
		length := 120_000 + rng.Int64N(1_680_000)
		start := rng.Int64N(window - length)
		if i%4 == 0 {
			meet = rng.Int64N(window)
		}
		if overlap {
			start = min(max(meet-rng.Int64N(length), 0), window-length)
		}
		bids[i] = Bid{Start: start, End: start + length, Weight: (1 + rng.Int64N(1_000_000)) * length, Job: int32(i / 4), ID: int32(i % 4)}
	}
	rng.Shuffle(n, func(i, j int) { bids[i], bids[j] = bids[j], bids[i] })
	return bids
}

// markets draws so many of them: one instance over and over would teach the processor its branches.
func markets(count, n int, overlap bool) [][]Bid {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	all := make([][]Bid, count)
	for i := range all {
		all[i] = market(rng, n, overlap)
	}
	return all
}

// allocations fails if a call allocates once it has seen the input.
func allocations(t *testing.T, what string, call func()) {
	t.Helper()
	call()
	if n := testing.AllocsPerRun(20, call); n != 0 {
		t.Errorf("%s allocates %v times when warm; want 0", what, n)
	}
}

// ranges of work drawn for bids.
func drawRanges(t *rapid.T, n int) []job.Range {
	out := make([]job.Range, n)
	for i := range out {
		from := rapid.Int64Range(0, 12).Draw(t, "from")
		out[i] = job.Range{From: from, To: from + rapid.Int64Range(0, 4).Draw(t, "units")}
	}
	return out
}
