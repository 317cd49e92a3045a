package clearing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestExclusiveVector(t *testing.T) {
	var c Clearer
	_, plain := c.Clear(twice)
	x := c.Exclusive(twice, nil)
	if plain != 12 || x.Value != 11 || x.Bound != 11 || !x.Exact || !slices.Equal(x.Won, []int32{2, 3}) {
		t.Errorf("plain %d, exclusive %+v; want 12, and {y1, z1} worth 11 and proven", plain, x)
	}
	x = c.Exclusive(twice, []int32{1, 0})
	if x.Value != 6 || !slices.Equal(x.Won, []int32{1}) || !slices.Equal(x.Stand, []int32{1}) {
		t.Errorf("with x2 fixed %+v; want it alone: x1 is of the same job, y1 and z1 overlap it", x)
	}
}

func TestExclusiveIsOptimalWhenSmall(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 20)
		x := c.Exclusive(bids, nil)
		verify(t, bids, x.Won, x.Value, onePerJob)
		if want := brute(bids, onePerJob); x.Value != want || x.Bound != want || !x.Exact {
			t.Fatalf("%+v; the best is %d", x, want)
		}
	})
}

func TestExclusiveAroundFixed(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 20)
		list := rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 4).Draw(t, "fixed")
		x := c.Exclusive(bids, list)
		verify(t, bids, x.Won, x.Value, onePerJob)
		var rest []Bid
		sum := int64(0)
		for _, i := range x.Stand {
			if !slices.Contains(list, i) || !slices.Contains(x.Won, i) {
				t.Fatalf("%d stands of %v, won are %v", i, list, x.Won)
			}
			sum += bids[i].Weight
		}
		for _, b := range bids {
			if !slices.ContainsFunc(x.Stand, func(i int32) bool { return !onePerJob(&bids[i], &b) }) {
				rest = append(rest, b)
			}
		}
		for _, i := range list {
			if int(i) < len(bids) && bids[i].fits() &&
				!slices.ContainsFunc(x.Stand, func(j int32) bool { return !onePerJob(&bids[i], &bids[j]) }) {
				t.Fatalf("%d could stand beside %v", i, x.Stand)
			}
		}
		if want := sum + brute(rest, onePerJob); x.Value != want {
			t.Fatalf("value %d; want %d", x.Value, want)
		}
	})
}

// Each part holds what it proves by itself: the plan is lawful, at least half of the best, and no bound is below the best,
// wherever the search is cut off.
func TestPartsOfTheContest(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	cut := 0
	for range 3000 {
		bids := make([]Bid, 1+rng.IntN(14))
		for i := range bids {
			start := rng.Int64N(16)
			bids[i] = Bid{Start: start, End: start + 1 + rng.Int64N(5), Weight: 1 + rng.Int64N(50), Job: rng.Int32N(5), ID: int32(i)}
		}
		best := brute(bids, onePerJob)
		var c Clearer
		c.load(bids, true)
		x := &c.contest
		lawful := func(part string, bound int64) {
			var won []int32
			for _, j := range x.pick {
				won = append(won, c.rows[j].bid)
			}
			verify(t, bids, won, x.value, onePerJob)
			if bound < best || x.value > best || 2*x.value < best {
				t.Fatalf("%s: value %d, bound %d; the best is %d of %+v", part, x.value, bound, best, bids)
			}
		}
		x.set(c.rows, jobs(bids))
		bound, alone := x.phases(), int64(0)
		for _, j := range x.keep {
			alone += x.rows[j].weight
		}
		if bound > 2*alone {
			t.Fatalf("two phases: bound %d is more than twice the value %d", bound, alone)
		}
		x.suggest(x.keep)
		if x.value < alone {
			t.Fatalf("a plan worth %d was made worse: %d", alone, x.value)
		}
		lawful("two phases", bound)

		x.set(c.rows, jobs(bids))
		x.bound = x.relax()
		x.offer()
		x.bargain()
		lawful("bargain", x.bound)

		x.set(c.rows, jobs(bids))
		x.bound = x.relax()
		x.offer()
		x.asked = append(x.asked[:0], x.price...)
		x.twoPhase()
		x.branch(rng.IntN(6))
		lawful("branch cut off", x.bound)
		if x.value < x.bound {
			cut++
		}
		x.branch(search(len(x.rows)))
		lawful("branch", x.bound)
		if x.value != best || x.bound != best {
			t.Fatalf("branch: value %d, bound %d; the best is %d", x.value, x.bound, best)
		}
	}
	if cut < 50 {
		t.Errorf("only %d searches were cut off; the bound of what is given up was hardly tried", cut)
	}
}

// Beyond what is searched out the plan is lawful and the bound between its value and twice that.
func TestExclusiveBeyond(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	var c Clearer
	for _, n := range []int{100, 400, 1500} {
		bids := scarce(rng, n)
		for i := range bids { // whole minutes, so that bids touch
			bids[i].Start -= bids[i].Start % 60_000
			bids[i].End -= bids[i].End % 60_000
		}
		x := c.Exclusive(bids, nil)
		verify(t, bids, x.Won, x.Value, onePerJob)
		for i := range bids {
			if !slices.ContainsFunc(x.Won, func(j int32) bool { return !onePerJob(&bids[i], &bids[j]) }) {
				t.Errorf("%d bids: there is room for %+v", n, bids[i])
			}
		}
		_, plain := c.Clear(bids)
		if x.Bound < x.Value || x.Bound > 2*x.Value || x.Bound > plain || x.Exact != (x.Value == x.Bound) {
			t.Errorf("%d bids: value %d, bound %d, plain %d, exact %v", n, x.Value, x.Bound, plain, x.Exact)
		}
	}
}

// Weights near the limit of what may be added up do not overflow.
func TestExclusiveOfGreatWeights(t *testing.T) {
	const most = (int64(1)<<62 - 1) / 12
	rng := rand.New(rand.NewPCG(17, 17))
	var c Clearer
	for range 300 {
		bids := make([]Bid, 12)
		for i := range bids {
			start := rng.Int64N(20)
			bids[i] = Bid{Start: start, End: start + 1 + rng.Int64N(8), Weight: most - rng.Int64N(most/2), Job: rng.Int32N(4), ID: int32(i)}
		}
		if x, want := c.Exclusive(bids, nil), brute(bids, onePerJob); x.Value != want || !x.Exact {
			t.Fatalf("%+v; the best is %d", x, want)
		}
		won, value := c.Clear(bids)
		if want := brute(bids, disjoint); value != want {
			t.Fatalf("value %d; the best is %d", value, want)
		}
		for k, p := range c.Prices(bids, won) {
			if p < 0 || p > bids[won[k]].Weight {
				t.Fatalf("price %d of weight %d", p, bids[won[k]].Weight)
			}
		}
	}
}
