package reclaim

import (
	"cmp"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestChoose(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		short  []int64
		pieces []Piece
		want   []int
	}{
		"nothing is short": {[]int64{0, -3}, []Piece{{[]int64{1, 1}, Cost{}}}, nil},
		"least work lost": {
			[]int64{1}, []Piece{{[]int64{1}, Cost{9 * s, 0}}, {[]int64{1}, Cost{2 * s, 90 * s}}, {[]int64{1}, Cost{3 * s, 1 * s}}},
			[]int{1},
		},
		"then least time left": {[]int64{1}, []Piece{{[]int64{1}, Cost{2 * s, 9 * s}}, {[]int64{1}, Cost{2 * s, 8 * s}}}, []int{1}},
		"then the fewest":      {[]int64{2}, []Piece{{[]int64{1}, Cost{}}, {[]int64{1}, Cost{}}, {[]int64{2}, Cost{}}}, []int{2}},
		"two small for one large": {
			[]int64{2}, []Piece{{[]int64{3}, Cost{5 * s, 0}}, {[]int64{1}, Cost{2 * s, 0}}, {[]int64{1}, Cost{2 * s, 0}}}, []int{1, 2},
		},
		"of each thing": {
			[]int64{1, 1}, []Piece{{[]int64{1, 0}, Cost{1 * s, 0}}, {[]int64{1, 1}, Cost{4 * s, 0}}, {[]int64{0, 1}, Cost{2 * s, 0}}},
			[]int{0, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := Choose(c.short, c.pieces); !ok || !slices.Equal(got.Pieces, c.want) {
				t.Errorf("%v, %v; want %v", got, ok, c.want)
			}
		})
	}
	if got, ok := Choose([]int64{3}, []Piece{{[]int64{1}, Cost{}}, {[]int64{1}, Cost{}}}); ok || len(got.Pieces) != 0 {
		t.Errorf("all of them together free too little, and chosen are %v", got)
	}
}

// TestChooseAgainstBruteForce over all sets.
func TestChooseAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		things := rapid.IntRange(1, 3).Draw(t, "things")
		short := rapid.SliceOfN(rapid.Int64Range(-1, 4), things, things).Draw(t, "short")
		var pieces []Piece
		for range rapid.IntRange(0, 9).Draw(t, "pieces") {
			pieces = append(pieces, Piece{
				rapid.SliceOfN(rapid.Int64Range(0, 3), things, things).Draw(t, "frees"),
				Cost{time.Duration(rapid.IntRange(0, 3).Draw(t, "lost")), time.Duration(rapid.IntRange(0, 3).Draw(t, "left"))},
			})
		}
		frees := func(set uint) (cost Cost, ok bool) {
			left := slices.Clone(short)
			for i := range pieces {
				if set>>i&1 == 1 {
					cost = cost.Plus(pieces[i].Cost)
					for d, n := range pieces[i].Frees {
						left[d] -= n
					}
				}
			}
			return cost, !slices.ContainsFunc(left, func(n int64) bool { return n > 0 })
		}
		best, cheapest, some := uint(0), Cost{}, false
		for set := range uint(1) << len(pieces) {
			cost, ok := frees(set)
			if ok && (!some || cmp.Or(cost.Compare(cheapest), cmp.Compare(bits.OnesCount(set), bits.OnesCount(best))) < 0) {
				best, cheapest, some = set, cost, true
			}
		}
		chosen, ok := Choose(short, pieces)
		got, cost := chosen.Pieces, chosen.Cost
		set := uint(0)
		for _, i := range got {
			set |= 1 << i
		}
		real, enough := frees(set)
		if ok != some || ok && (!enough || cost != real || cost != cheapest || len(got) != bits.OnesCount(best)) || !slices.IsSorted(got) {
			t.Fatalf("it is %v for %v (%v), want %b for %v (%v)", got, cost, ok, best, cheapest, some)
		}
		if again, _ := Choose(short, pieces); !slices.Equal(again.Pieces, got) {
			t.Fatalf("it is %v, and then %v", got, again)
		}
	})
}

// TestChooseAmongManyAlike: the dominance rule keeps equal pieces from being tried in every order.
func TestChooseAmongManyAlike(t *testing.T) {
	var pieces []Piece
	for i := range 500 {
		pieces = append(pieces, Piece{[]int64{1}, Cost{time.Duration((i * 37) % 500), 0}})
	}
	chosen, ok := Choose([]int64{20}, pieces)
	got, cost := chosen.Pieces, chosen.Cost
	if !ok || len(got) != 20 || cost.Lost != 190 {
		t.Errorf("%v for %v (%v)", got, cost, ok)
	}
}

// TestChooseAllBeyondTheBound: the bound only counts once a set is found, so one that needs all pieces is found however many there are.
func TestChooseAllBeyondTheBound(t *testing.T) {
	pieces := make([]Piece, maxSets+10)
	for i := range pieces {
		pieces[i].Frees = []int64{1}
	}
	if got, ok := Choose([]int64{int64(len(pieces))}, pieces); !ok || len(got.Pieces) != len(pieces) {
		t.Errorf("%d of %d are stopped, %v", len(got.Pieces), len(pieces), ok)
	}
}
