package migrate

import (
	"testing"

	"sluice.dev/sluice/internal/core/planner/plannertest"
)

func TestConformance(t *testing.T) { plannertest.Run(t, Kind()) }
