package place_test

import (
	"testing"

	"sluice.dev/sluice/internal/lab/planner/plannertest"
	"sluice.dev/sluice/internal/lab/planner/random"
)

func TestConformance(t *testing.T) {
	for _, kind := range append(scored(), random.Kind()) {
		t.Run(kind.Name, func(t *testing.T) { plannertest.Run(t, kind) })
	}
}
