package ends_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/ends"
)

// TestAGuardKeepsItsShare: whoever decides what fails, knowing the level, and however seldom predictions are needed, no more than
// theta fail and what the guarantee adds; where the level is 0 nothing can.
func TestAGuardKeepsItsShare(t *testing.T) {
	const gamma = 20_000
	rapid.Check(t, func(t *rapid.T) {
		theta := rapid.Int64Range(1_000, 500_000).Draw(t, "theta")
		g := ends.NewGuard(theta)
		missed, n := int64(0), int64(0)
		for range rapid.IntRange(1, 8).Draw(t, "phases") {
			// An adversary fails whenever the level is above this; or never.
			above := rapid.Int64Range(0, 1_100_000).Draw(t, "above")
			for range rapid.IntRange(1, 400).Draw(t, "long") {
				failed := g.At() > 0 && g.At() > above
				g.Saw(failed)
				if n++; failed {
					missed++
				}
				if g.At() > 2*theta {
					t.Fatalf("level %d of theta %d", g.At(), theta)
				}
			}
		}
		if most := (theta*n + (theta+gamma)*1_000_000/gamma + 999_999) / 1_000_000; missed > most {
			t.Fatalf("%d of %d failed; the guarantee is %d", missed, n, most)
		}
	})
}
