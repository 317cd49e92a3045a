package all_test

import (
	"testing"

	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// TestNoOrderIsBetter: on one device, with everybody there, Smith's rule is the best order of all.
func TestNoOrderIsBetter(t *testing.T) {
	t.Run("sjf", func(t *testing.T) { Optimal(t, ranked.SJF(), 1) })
	t.Run("sjf-easy", func(t *testing.T) { Optimal(t, ranked.SJFEasy(), 1) })
	t.Run("wspt", func(t *testing.T) { Optimal(t, ranked.WSPT(), 5) })
}
