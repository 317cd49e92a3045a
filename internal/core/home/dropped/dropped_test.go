package dropped

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

// TestTheLastDroppedAreRemembered: random drops of new names and of old ones, held against a plain list. Which are remembered, up to which
// life, in which order, and the digest are those of the list.
func TestTheLastDroppedAreRemembered(t *testing.T) {
	type entered struct {
		id   job.ID
		last job.Generation
	}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		var z Jobs
		names := rapid.SampledFrom([]int{3, most - 1, most, most + 1, 5 * most}).Draw(rt, "names")
		var want []entered
		for range rapid.IntRange(1, 6*most).Draw(rt, "drops") {
			g := entered{job.ID(fmt.Sprint("j", draw(names))), job.Generation(draw(5))}
			z.Add(g.id, g.last)
			if g.last == 0 {
				continue
			}
			if i := slices.IndexFunc(want, func(o entered) bool { return o.id == g.id }); i >= 0 {
				g.last = max(g.last, want[i].last)
				want = slices.Delete(want, i, i+1)
			} else if len(want) == most {
				want = slices.Delete(want, 0, 1)
			}
			want = append(want, g)
		}
		var got []entered
		sum := uint64(0)
		for id, last := range z.All() {
			got = append(got, entered{id, last})
			sum += sumOf(id, last)
		}
		if !slices.Equal(got, want) || sum != z.Sum() {
			rt.Fatalf("%d are remembered, want %d; the digest is that of others: %v", len(got), len(want), sum != z.Sum())
		}
		if n := len(z.line); n > 2*most || len(z.of) != len(want) {
			rt.Fatalf("a line of %d for %d", n, len(want))
		}
	})
}
