package home

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestTheLastDroppedAreRemembered: random drops of new names and of old ones, held against a plain list. Which are remembered, up to which
// life, in which order, and the digest are those of the list.
func TestTheLastDroppedAreRemembered(t *testing.T) {
	type grave struct {
		id   job.ID
		last job.Generation
	}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		z := newDesk(Config{})
		names := rapid.SampledFrom([]int{3, mostBuried - 1, mostBuried, mostBuried + 1, 5 * mostBuried}).Draw(rt, "names")
		var want []grave
		for range rapid.IntRange(1, 6*mostBuried).Draw(rt, "drops") {
			g := grave{job.ID(fmt.Sprint("j", draw(names))), job.Generation(draw(5))}
			z.Apply(protocol.Fact{Kind: protocol.HomeDropped, Job: g.id, Generation: g.last})
			if g.last == 0 {
				continue
			}
			if i := slices.IndexFunc(want, func(o grave) bool { return o.id == g.id }); i >= 0 {
				g.last = max(g.last, want[i].last)
				want = slices.Delete(want, i, i+1)
			} else if len(want) == mostBuried {
				want = slices.Delete(want, 0, 1)
			}
			want = append(want, g)
		}
		var got []grave
		sum := uint64(0)
		for id, last := range z.buried.all() {
			got = append(got, grave{id, last})
			sum += graveSum(id, last)
		}
		if !slices.Equal(got, want) || sum != z.Digest() {
			rt.Fatalf("%d are remembered, want %d; the digest is that of others: %v", len(got), len(want), sum != z.Digest())
		}
		if n := len(z.buried.line); n > 2*mostBuried || len(z.buried.of) != len(want) {
			rt.Fatalf("a line of %d for %d", n, len(want))
		}
	})
}
