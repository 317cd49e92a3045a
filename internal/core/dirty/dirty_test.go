package dirty

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type thing struct {
	id   int
	mark Mark
}

// TestSetAgainstAList: what is marked is remade once, in the order of marking, also what is marked while others are remade.
func TestSetAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set[*thing]
		var want []int
		things := make([]thing, 9)
		for i := range things {
			things[i].id = i
		}
		add := func(i int) {
			s.Add(&things[i].mark, &things[i])
			if !slices.Contains(want, i) {
				want = append(want, i)
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			if i := rapid.IntRange(0, 11).Draw(t, "what"); i < len(things) {
				add(i)
				continue
			}
			var got []int
			for _, x := range s.List() {
				got = append(got, x.id)
			}
			if !slices.Equal(got, want) || s.Len() != len(want) {
				t.Fatalf("%v are marked, %d of them, want %v", got, s.Len(), want)
			}
			if i := rapid.IntRange(0, 2).Draw(t, "oldest"); i > 0 {
				for range i {
					s.Oldest(func(x *thing) {
						if x.id != want[0] || x.mark {
							t.Fatalf("%d is remade, marked %v, want %d", x.id, x.mark, want[0])
						}
						want = want[1:]
					})
				}
				continue
			}
			again := rapid.IntRange(0, len(things)-1).Draw(t, "again")
			var remade []int
			s.Drain(func(x *thing) {
				if x.mark {
					t.Fatalf("%d is remade while it is marked", x.id)
				}
				if remade = append(remade, x.id); len(remade) == 1 {
					s.Add(&things[again].mark, &things[again])
					if !slices.Contains(want[1:], again) {
						want = append(want, again)
					}
				}
			})
			if !slices.Equal(remade, want) || s.Len() != 0 || bool(things[again].mark) {
				t.Fatalf("%v were remade, want %v", remade, want)
			}
			want = nil
		}
	})
}
