package ranking

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type thing struct{ name, size int }

// TestRanking against a scan in order, with enough things for several chunks, which come one by one and many at once.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := func(a, b *thing) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name)) }
		// Keys say all, a part, or nothing of the order.
		coarse := []int{0, 1, 3, 100}[rapid.IntRange(0, 3).Draw(t, "coarse")]
		by := Order[*thing]{Compare: before}
		if coarse > 0 {
			by.Key = func(a *thing) Key {
				if coarse == 1 {
					return Key{int64(a.size), int64(a.name)}
				}
				return Key{int64(a.size / coarse)}
			}
		}
		var r List[*thing]
		type member struct {
			need time.Duration
			of   *thing
		}
		var all []member
		seed := rapid.Uint64().Draw(t, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		for n := range rapid.IntRange(1, 1500).Draw(t, "changes") {
			if len(all) > 0 && draw(3) == 0 {
				i := draw(len(all))
				r.Remove(by, all[i].of)
				r.Remove(by, &thing{name: all[i].of.name, size: -1}) // which is not in
				r.Remove(by, &thing{name: -1, size: all[i].of.size})
				all = slices.Delete(all, i, i+1)
				if r.Empty() != (len(all) == 0) {
					t.Fatalf("of %d things: empty %v", len(all), r.Empty())
				}
				continue
			}
			e := member{time.Duration(draw(100)), &thing{name: n, size: draw(50)}}
			all = append(all, e)
			if draw(100) > 0 {
				r.Insert(by, e.need, e.of)
				continue
			}
			r.Gather(by, e.need, e.of)
			sorted := draw(2) == 0
			for m := range draw(700) {
				e := member{time.Duration(draw(100)), &thing{name: 10_000*(n+1) + m, size: draw(50)}}
				if sorted {
					e.of.size = 25
				}
				all = append(all, e)
				r.Gather(by, e.need, e.of)
			}
			r.Settle(by)
		}
		slices.SortFunc(all, func(a, b member) int { return before(a.of, b.of) })
		for length := time.Duration(-1); length < 101; length += 3 {
			var want *thing
			if i := slices.IndexFunc(all, func(e member) bool { return e.need <= length }); i >= 0 {
				want = all[i].of
			}
			if got, ok := r.First(length); got != want || ok != (want != nil) {
				t.Fatalf("of %d things the first for %d is %v, want %v", len(all), length, got, want)
			}
			var within, list []*thing
			for _, e := range all {
				if e.need <= length {
					list = append(list, e.of)
				}
			}
			for got := range r.Within(length) {
				within = append(within, got)
			}
			if !slices.Equal(within, list) {
				t.Fatalf("of %d things %d are within %d, want %d", len(all), len(within), length, len(list))
			}
		}
		for range 20 {
			at := &thing{name: draw(1500), size: draw(52) - 1} // mostly one that is not in
			if len(all) > 0 && draw(2) == 0 {
				at = all[draw(len(all))].of
			}
			var behind, list []*thing
			for _, e := range all {
				if before(e.of, at) > 0 {
					list = append(list, e.of)
				}
			}
			for got := range r.Behind(by, at) {
				behind = append(behind, got)
			}
			if !slices.Equal(behind, list) {
				t.Fatalf("of %d things %d are behind %v, want %d", len(all), len(behind), *at, len(list))
			}
		}
	})
}

// TestAhead: it is how many a plain look finds in front, wherever the boundary lies and however the chunks are.
func TestAhead(t *testing.T) {
	var r List[int]
	order := Order[int]{Compare: cmp.Compare[int]}
	const n = 3000
	for i := range n {
		r.Insert(order, 0, i*7919%n)
	}
	for i := range n {
		if i%5 == 0 {
			r.Remove(order, i)
		}
	}
	for limit := -1; limit <= n+1; limit += 7 {
		want, whole := 0, 0
		for i := range r.All() {
			whole++
			if i < limit {
				want++
			}
		}
		if ahead, all := r.Ahead(func(i int) bool { return i < limit }); ahead != want || all != whole {
			t.Fatalf("below %d: %d of %d, want %d of %d", limit, ahead, all, want, whole)
		}
	}
}

// TestNextIsWithin: a cursor meets what Within yields, in the same order.
func TestNextIsWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r List[int]
		for i := range rapid.IntRange(0, 3*chunkSize).Draw(t, "n") {
			r.Insert(Order[int]{Compare: cmp.Compare[int]}, time.Duration(rapid.IntRange(0, 3).Draw(t, "need")), i)
		}
		length := time.Duration(rapid.IntRange(0, 3).Draw(t, "length"))
		var c Cursor
		for want := range r.Within(length) {
			if got, ok := r.Next(&c, length); !ok || got != want {
				t.Fatalf("next is %d, %v, want %d", got, ok, want)
			}
		}
		if got, ok := r.Next(&c, length); ok {
			t.Fatalf("next is %d behind all", got)
		}
	})
}
