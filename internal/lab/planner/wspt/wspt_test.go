package wspt

import (
	"testing"

	"sluice.dev/sluice/internal/lab/planner/plannertest"
)

// TestNoOrderIsBetter: on one device, with everybody there, Smith's rule is the best order of all.
func TestNoOrderIsBetter(t *testing.T) { plannertest.Optimal(t, Kind(), 5) }
