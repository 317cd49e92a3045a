package list

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

type listed struct {
	key  status.JobKey
	slot int
}

func (l *listed) ListKey() status.JobKey { return l.key }

func byKey(a, b *listed) int { return (enrolled[*listed]{a.key.Submitted, a}).compare(b.key) }

// TestPagesOfRosters: random jobs in two rosters, many at one instant, that come mostly in order and go. Each page, and how many stand
// before it, is that of a sorted list of all.
func TestPagesOfRosters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		var rosters [2]Roster[*listed]
		var in [2][]*listed
		for i := range rapid.SampledFrom([]int{1, 10, 3 * rosterChunk}).Draw(rt, "changes") {
			of := draw(2)
			if draw(4) == 0 && len(in[of]) > 0 {
				k := draw(len(in[of]))
				rosters[of].Remove(in[of][k])
				in[of] = slices.Delete(in[of], k, k+1)
				continue
			}
			j := &listed{key: status.JobKey{Submitted: quantity.Instant(i/10*10 - 100*(draw(20)/19)), Name: job.ID(fmt.Sprintf("j%d", i))}}
			at, _ := slices.BinarySearchFunc(in[of], j, byKey)
			if at == len(in[of]) && draw(2) == 0 {
				rosters[of].Append(j)
			} else {
				rosters[of].Insert(j)
			}
			in[of] = slices.Insert(in[of], at, j)
		}
		all := slices.SortedFunc(slices.Values(slices.Concat(in[0], in[1])), byKey)
		if rosters[0].Len() != len(in[0]) || rosters[1].Len() != len(in[1]) {
			rt.Fatalf("%d and %d jobs, want %d and %d", rosters[0].Len(), rosters[1].Len(), len(in[0]), len(in[1]))
		}
		for range 5 {
			before, end := status.JobKey{}, len(all)
			if len(all) > 0 && draw(3) > 0 {
				end = draw(len(all))
				before = all[end].key
			}
			limit := draw(30)
			from := 0
			if limit > 0 {
				from = max(0, end-limit)
			}
			got, older := Newest([]*Roster[*listed]{&rosters[0], &rosters[1]}, before, limit)
			if !slices.Equal(got, all[from:end]) || older != from {
				rt.Fatalf("before %v, at most %d: %d jobs and %d older, want %d and %d", before, limit, len(got), older, end-from, from)
			}
		}
	})
}

// TestASetKnowsItsPlaces: what is in it is in it once, and knows where.
func TestASetKnowsItsPlaces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := make([]*listed, 8)
		for i := range all {
			all[i] = &listed{}
		}
		slot := func(l *listed) *int { return &l.slot }
		var s Set[*listed]
		in := map[*listed]bool{}
		for range rapid.IntRange(1, 60).Draw(rt, "changes") {
			l := all[rapid.IntRange(0, 7).Draw(rt, "of")]
			if in[l] = rapid.Bool().Draw(rt, "added"); in[l] {
				s.Add(l, slot)
			} else {
				s.Drop(l, slot)
				delete(in, l)
			}
			for i, l := range s {
				if l.slot != i+1 || !in[l] {
					rt.Fatalf("at %d stands one whose place is %d", i+1, l.slot)
				}
			}
			if len(s) != len(in) || (l.slot > 0) != in[l] {
				rt.Fatalf("%d are in, want %d", len(s), len(in))
			}
		}
	})
}
