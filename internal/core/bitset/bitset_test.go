package bitset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
)

// TestSetAgainstAList: whatever is set and cleared, the way through gives the same positions as a plain list.
func TestSetAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p, q Set
		list := make([]bool, rapid.SampledFrom([]int{1, 64, 200, 4096, 10_000}).Draw(t, "length"))
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			if rapid.IntRange(0, 30).Draw(t, "clear") == 0 {
				p.Clear()
				clear(list)
			}
			i := rapid.IntRange(0, len(list)-1).Draw(t, "position")
			if list[i] = rapid.Bool().Draw(t, "set"); list[i] {
				p.Put(i)
			} else {
				p.Drop(i)
			}
		}
		for range rapid.IntRange(0, 10).Draw(t, "more") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "added")
			q.Put(i)
			list[i] = true
		}
		p.Join(&q)
		var r Set
		for i := len(list) - 1; i >= 0; i-- {
			r.Put(i)
			if !list[i] {
				r.Drop(i)
			}
		}
		if !p.Equal(&r) || !r.Equal(&p) {
			t.Fatalf("%v is not %v", p, r)
		}
		i := rapid.IntRange(0, len(list)-1).Draw(t, "other")
		if list[i] {
			r.Drop(i)
		} else {
			r.Put(i)
		}
		if p.Equal(&r) || r.Equal(&p) {
			t.Fatalf("%v is %v", p, r)
		}
		var want []int
		for i, in := range list {
			if in {
				want = append(want, i)
			}
			if p.Has(i) != in {
				t.Fatalf("%d: %v", i, p.Has(i))
			}
		}
		var got []int
		for i := p.Next(0); i >= 0; i = p.Next(i + 1) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) || p.Len() != len(want) {
			t.Fatalf("%v, %d of them, want %v", got, p.Len(), want)
		}
	})
}

// TestInsertAgainstAList: what stands behind the place of something new moves up, and nothing else.
func TestInsertAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Set
		list := make([]bool, rapid.SampledFrom([]int{0, 1, 63, 64, 140, 4096, 9000}).Draw(t, "length"))
		rare := rapid.SampledFrom([]int{2, 1000}).Draw(t, "rare")
		draw := prng.New(rapid.Uint64().Draw(t, "seed"))
		for i := range list {
			if list[i] = draw.IntN(rare) == 0; list[i] {
				p.Put(i)
			}
		}
		for range rapid.IntRange(1, 70).Draw(t, "inserts") {
			i := rapid.IntRange(0, len(list)).Draw(t, "at")
			list = slices.Insert(list, i, false)
			p.Insert(i)
		}
		for i, in := range list {
			if p.Has(i) != in {
				t.Fatalf("%d: %v", i, p.Has(i))
			}
		}
		n := 0
		for i := p.Next(0); i >= 0; i = p.Next(i + 1) {
			n++
		}
		if n != p.Len() {
			t.Fatalf("%d on the way through, %d in all", n, p.Len())
		}
		if p.Next(len(list)) >= 0 {
			t.Fatal("something came in at the end")
		}
	})
}

// TestRemoveAgainstAList: what stands behind the place of something that is taken out moves down, and nothing else.
func TestRemoveAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Set
		list := make([]bool, rapid.SampledFrom([]int{1, 63, 64, 65, 140, 4096, 9000}).Draw(t, "length"))
		rare := rapid.SampledFrom([]int{2, 1000}).Draw(t, "rare")
		draw := prng.New(rapid.Uint64().Draw(t, "seed"))
		for i := range list {
			if list[i] = draw.IntN(rare) == 0; list[i] {
				p.Put(i)
			}
		}
		for range rapid.IntRange(1, min(70, len(list))).Draw(t, "removals") {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "at")
			list = slices.Delete(list, i, i+1)
			p.Remove(i)
		}
		p.Remove(len(list) + 100) // behind the last there is nothing
		n := 0
		for i, in := range list {
			if p.Has(i) != in {
				t.Fatalf("%d: %v", i, p.Has(i))
			}
			if in {
				n++
			}
		}
		through := 0
		for i := p.Next(0); i >= 0; i = p.Next(i + 1) {
			through++
		}
		if through != n || p.Len() != n {
			t.Fatalf("%d on the way through, %d in all, want %d", through, p.Len(), n)
		}
	})
}

// TestLooksAgainstAList: how many there are in a stretch, which is the last below a number, and what is left without others.
func TestLooksAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p, q Set
		list := make([]bool, rapid.SampledFrom([]int{0, 1, 63, 64, 200, 5000, 10_000}).Draw(t, "length"))
		rare := rapid.SampledFrom([]int{5, 1000}).Draw(t, "rare")
		draw := prng.New(rapid.Uint64().Draw(t, "seed"))
		for i := range list {
			if list[i] = draw.IntN(rare) == 0; list[i] {
				p.Put(i)
			}
			if list[i] && draw.IntN(2) == 0 {
				q.Put(i)
				list[i] = false
			}
		}
		p.Without(&q)
		from, below := rapid.IntRange(0, len(list)+100).Draw(t, "from"), rapid.IntRange(0, len(list)+100).Draw(t, "below")
		n, last := 0, -1
		for i, in := range list {
			if in && i < below {
				last = i
				if i >= from {
					n++
				}
			}
		}
		if p.Count(from, below) != n || p.Last(below) != last {
			t.Fatalf("from %d below %d there are %d, the last %d; want %d, %d", from, below, p.Count(from, below), p.Last(below), n, last)
		}
	})
}
