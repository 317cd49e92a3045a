package clearing

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The vectors of the specification.
func TestVectors(t *testing.T) {
	for name, c := range map[string]struct {
		bids  []Bid
		won   []int32
		value int64
	}{
		"scheduling": {[]Bid{
			{Start: 0, End: 3, Weight: 2}, {Start: 1, End: 5, Weight: 4, ID: 1}, {Start: 4, End: 6, Weight: 4, ID: 2},
			{Start: 2, End: 9, Weight: 7, ID: 3}, {Start: 7, End: 10, Weight: 2, ID: 4}, {Start: 8, End: 11, Weight: 1, ID: 5},
		}, []int32{0, 2, 4}, 8},
		"plain sells one job twice": {twice, []int32{0, 1}, 12},
		"by score, three short ones win": {[]Bid{
			{Start: 0, End: 30, Weight: 900}, {Start: 0, End: 10, Weight: 400, Job: 1}, {Start: 10, End: 20, Weight: 400, Job: 2},
			{Start: 20, End: 30, Weight: 400, Job: 3},
		}, []int32{1, 2, 3}, 1200},
		"by score x duration, the long one wins": {[]Bid{
			{Start: 0, End: 30, Weight: 900 * 30}, {Start: 0, End: 10, Weight: 400 * 10, Job: 1},
			{Start: 10, End: 20, Weight: 400 * 10, Job: 2}, {Start: 20, End: 30, Weight: 400 * 10, Job: 3},
		}, []int32{0}, 27000},
		"by score {a1, b1, c1}":    {scored(func(score, _ int64) int64 { return score }), []int32{0, 2, 4}, 1_620_000},
		"by score x duration {d1}": {scored(func(score, length int64) int64 { return score * length }), []int32{5}, 850_000 * 60},
		"nothing":                  {nil, []int32{}, 0},
		"nothing of worth": {[]Bid{{Start: 0, End: 5}, {Start: 5, End: 5, Weight: 3}, {Start: 7, End: 6, Weight: 3},
			{Start: -1, End: 2, Weight: 3}, {End: Horizon + 1, Weight: 3}}, []int32{}, 0},
		"the whole horizon": {[]Bid{{End: Horizon, Weight: 5}, {Start: Horizon - 1, End: Horizon, Weight: 5, Job: 1},
			{End: 1, Weight: 1, Job: 2}}, []int32{2, 1}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var c2 Clearer
			won, value := c2.Clear(c.bids)
			if !slices.Equal(won, c.won) || value != c.value {
				t.Errorf("won %v, value %d; want %v, %d", won, value, c.won, c.value)
			}
		})
	}
}

// twice is x1, x2 of one job, y1, z1: the vector of exclusivity, in tenths.
var twice = []Bid{{Start: 0, End: 4, Weight: 6}, {Start: 4, End: 8, Weight: 6, ID: 1}, {Start: 2, End: 7, Weight: 7, Job: 1},
	{Start: 7, End: 10, Weight: 4, Job: 2}}

// scored are the six variants of the vector of scoring: their scores in millionths, weighed.
func scored(weight func(score, length int64) int64) []Bid {
	var bids []Bid
	for _, v := range []struct {
		start, end, score int64
		job               int32
	}{{100, 120, 626_667, 0}, {100, 140, 663_333, 0}, {120, 145, 613_333, 1}, {130, 160, 670_000, 1}, {145, 160, 380_000, 2},
		{100, 160, 850_000, 3}} {
		bids = append(bids, Bid{Start: v.start, End: v.end, Weight: weight(v.score, v.end-v.start), Job: v.job, ID: int32(len(bids))})
	}
	return bids
}

func TestTablesOfTheVector(t *testing.T) {
	var c Clearer
	c.Clear([]Bid{
		{Start: 0, End: 3, Weight: 2}, {Start: 1, End: 5, Weight: 4, ID: 1}, {Start: 4, End: 6, Weight: 4, ID: 2},
		{Start: 2, End: 9, Weight: 7, ID: 3}, {Start: 7, End: 10, Weight: 2, ID: 4}, {Start: 8, End: 11, Weight: 1, ID: 5},
	})
	var before []int32
	for _, r := range c.rows {
		before = append(before, r.before)
	}
	if want := []int32{0, 0, 1, 0, 3, 3}; !slices.Equal(before, want) {
		t.Errorf("p = %v; want %v", before, want)
	}
	if want := []int64{0, 2, 4, 6, 7, 8, 8}; !slices.Equal(c.best, want) {
		t.Errorf("OPT = %v; want %v", c.best, want)
	}
}

func TestClearIsOptimal(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 12)
		won, value := c.Clear(bids)
		verify(t, bids, won, value, disjoint)
		if want := brute(bids, disjoint); value != want {
			t.Fatalf("value %d; the best is %d", value, want)
		}
		if want := textbook(bids); !slices.Equal(won, want) {
			t.Fatalf("won %v; the textbook's %v", won, want)
		}
	})
}

// textbook is the routine as it is taught: sorted by (End, Job, ID), a row taken only if that is worth more.
func textbook(bids []Bid) []int32 {
	var order []int32
	for i := range bids {
		if bids[i].sound() {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(i, j int32) int {
		return cmp.Or(cmp.Compare(bids[i].End, bids[j].End), compare(&bids[i], &bids[j]))
	})
	best := []int64{0}
	plans := [][]int32{nil}
	for j, i := range order {
		p := 0
		for p < j && bids[order[p]].End <= bids[i].Start {
			p++
		}
		best, plans = append(best, best[j]), append(plans, plans[j])
		if v := best[p] + bids[i].Weight; v > best[j] {
			best[j+1], plans[j+1] = v, append(slices.Clone(plans[p]), i)
		}
	}
	return plans[len(order)]
}

// What wins is the same in any order of bids, and of bids that differ in nothing but their number the same one.
func TestOrderOfBidsDoesNotMatter(t *testing.T) {
	var c, d Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 14, 10)
		other := shuffled(t, bids)
		won, value := c.Clear(bids)
		won2, value2 := d.Clear(other)
		if value != value2 || !slices.Equal(chosen(bids, won), chosen(other, won2)) {
			t.Fatalf("won %v; in another order %v", chosen(bids, won), chosen(other, won2))
		}
		prices, prices2 := c.Prices(bids, won), d.Prices(other, won2)
		if !slices.Equal(prices, prices2) {
			t.Fatalf("prices %v; in another order %v", prices, prices2)
		}
		x, y := c.Exclusive(bids, nil), d.Exclusive(other, nil)
		if x.Value != y.Value || x.Bound != y.Bound || !slices.Equal(chosen(bids, x.Won), chosen(other, y.Won)) {
			t.Fatalf("exclusive %+v; in another order %+v", x, y)
		}
	})
}

// A bid that loses never lowers the value, and taking it away changes nothing.
func TestLosersDoNotMatter(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 12)
		if len(bids) == 0 {
			return
		}
		won, value := c.Clear(bids)
		winners := chosen(bids, won)
		out := rapid.IntRange(0, len(bids)-1).Draw(t, "out")
		rest := slices.Delete(slices.Clone(bids), out, out+1)
		won2, value2 := c.Clear(rest)
		if value2 > value {
			t.Fatalf("bid %+v lowers the value from %d to %d", bids[out], value2, value)
		}
		if !slices.Contains(winners, bids[out]) && (value2 != value || !slices.Equal(chosen(rest, won2), winners)) {
			t.Fatalf("without the loser %+v, %v win instead of %v", bids[out], chosen(rest, won2), winners)
		}
	})
}

// The three ways of sorting agree with a plain one, many ties included.
func TestOrderSorts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, fewWords - 1, fewWords, someWords - 1, someWords, 5000} {
		for _, span := range []int64{1, 3, 1000, 1 << 22, Horizon} {
			t.Run(fmt.Sprintf("%d within %d", n, span), func(t *testing.T) {
				bids := make([]Bid, n)
				index := make([]int32, n)
				for i := range bids {
					end := 1 + rng.Int64N(span)
					bids[i] = Bid{Start: rng.Int64N(end), End: end, Weight: 1, Job: rng.Int32N(3), ID: int32(i)}
					index[i] = int32(i)
				}
				rng.Shuffle(n, func(i, j int) { bids[i], bids[j] = bids[j], bids[i] })
				slices.SortFunc(index, func(i, j int32) int {
					if d := bids[i].End - bids[j].End; d != 0 {
						return int(d)
					}
					return compare(&bids[i], &bids[j])
				})
				var c Clearer
				c.load(bids, true)
				for j, i := range index {
					r := c.rows[j]
					if r.bid != i {
						t.Fatalf("place %d has bid %d; want %d", j, r.bid, i)
					}
					before := 0
					for before < n && bids[index[before]].End <= r.start {
						before++
					}
					if int(r.before) != before {
						t.Fatalf("%d rows end before bid %d; want %d", r.before, i, before)
					}
				}
			})
		}
	}
}

func TestAround(t *testing.T) {
	bids := []Bid{
		{Start: 0, End: 10, Weight: 9}, {Start: 2, End: 4, Weight: 1, Job: 1}, {Start: 4, End: 8, Weight: 0, Job: 1, ID: 1},
		{Start: 0, End: 2, Weight: 1, Job: 2}, {Start: 3, End: 5, Weight: 5, Job: 3}, {Start: 8, End: 10, Weight: 2, Job: 3, ID: 1},
		{Start: 5, End: 5, Weight: 7, Job: 4},
	}
	for name, c := range map[string]struct {
		fixed, won, stand []int32
		value             int64
	}{
		"none":                 {nil, []int32{0}, nil, 9},
		"one, worth nothing":   {[]int32{2}, []int32{3, 1, 2, 5}, []int32{2}, 4},
		"the first of two":     {[]int32{4, 2}, []int32{3, 4, 5}, []int32{4}, 8},
		"a chain of one job":   {[]int32{2, 1}, []int32{3, 1, 2, 5}, []int32{1, 2}, 4},
		"twice, empty, no bid": {[]int32{2, 2, 6, 7, -1}, []int32{3, 1, 2, 5}, []int32{2}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var k Clearer
			won, stand, value := k.Around(bids, c.fixed)
			if !slices.Equal(won, c.won) || !slices.Equal(stand, c.stand) || value != c.value {
				t.Errorf("won %v, stand %v, value %d; want %v, %v, %d", won, stand, value, c.won, c.stand, c.value)
			}
		})
	}
}

// Around is the best of all plans that have what stands, and what stands is the list without what overlaps.
func TestAroundIsOptimal(t *testing.T) {
	var c Clearer
	rapid.Check(t, func(t *rapid.T) {
		bids := drawBids(t, 12, 12)
		list := rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 4).Draw(t, "fixed")
		var stand []int32
		sum := int64(0)
		for _, i := range list {
			if int(i) < len(bids) && bids[i].fits() &&
				!slices.ContainsFunc(stand, func(j int32) bool { return bids[j].overlaps(&bids[i]) }) {
				stand = append(stand, i)
				sum += bids[i].Weight
			}
		}
		var rest []Bid
		for _, b := range bids {
			if !slices.ContainsFunc(stand, func(j int32) bool { return bids[j].overlaps(&b) }) {
				rest = append(rest, b)
			}
		}
		won, got, value := c.Around(bids, list)
		verify(t, bids, won, value, disjoint)
		slices.SortFunc(stand, func(i, j int32) int { return int(bids[i].Start - bids[j].Start) })
		if !slices.Equal(got, stand) {
			t.Fatalf("%v stand; want %v", got, stand)
		}
		for _, i := range stand {
			if !slices.Contains(won, i) {
				t.Fatalf("%d stands and is not among %v", i, won)
			}
		}
		if want := sum + brute(rest, disjoint); value != want {
			t.Fatalf("value %d; want %d", value, want)
		}
	})
}

func TestWarmCallsDoNotAllocate(t *testing.T) {
	for _, n := range []int{16, 500, 2000} {
		rng := rand.New(rand.NewPCG(5, uint64(n)))
		bids, more := market(rng, n, true), market(rng, n, false)
		windows := [][]Bid{bids[:n/2], bids[n/2:]}
		fixed, at := []int32{1, 5}, []At{{0, 1}, {1, 3}}
		ranges := drawn(rng, n)
		var c Clearer
		allocations(t, "Clear", func() { c.Clear(bids) })
		allocations(t, "Prices", func() {
			won, _ := c.Clear(more)
			c.Prices(more, won)
		})
		allocations(t, "Around", func() { c.Around(bids, fixed) })
		allocations(t, "Exclusive", func() { c.Exclusive(more, fixed) })
		allocations(t, "Joint", func() { c.Joint(windows, at) })
		allocations(t, "Conflict", func() { c.Conflict(more, ranges) })
	}
}
