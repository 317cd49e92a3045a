package scenario

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// playable is an error if a mechanism can't play the scenario. Planners place rigid blocks on slices that are always there.
func (s *Scenario) playable(m *Mechanism) error {
	if m.Planner != nil && len(s.Reservations)+len(s.Faults) > 0 {
		return fmt.Errorf("mechanism %s: planners know no reservations and no faults, and scenario %s has some; run sja alone, or take them out with --set cluster.reservations=[] --set faults=[]", m.Name, s.Name)
	}
	return nil
}

// playPlanner plays the scenario under a planner.
func (s *Scenario) playPlanner(_ context.Context, on stage) (quantity.Instant, bool, error) {
	return 0, false, errkind.Errorf(errkind.Unavailable, "planner %s can't be played yet", on.mechanism.Name)
}
