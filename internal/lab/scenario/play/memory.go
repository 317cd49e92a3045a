package play

import (
	"slices"

	"sluice.dev/sluice/internal/lab/oom"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/sim"
)

// hosts are the hosts of the driver under a mechanism: its time begins at the epoch.
func hosts(s *scenario.Scenario, mechanism *Mechanism) *sim.HostMemory {
	if s.Memory == nil {
		return nil
	}
	h := s.Memory.HostMemory
	if mechanism.Survivor != "" {
		h.Killer = oom.Named(mechanism.Survivor)
	}
	h.Storms = slices.Clone(h.Storms)
	for i := range h.Storms {
		h.Storms[i].At = h.Storms[i].At.Add(epoch)
	}
	return &h
}
