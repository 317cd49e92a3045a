package nvml

import (
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/inventory"
)

var _ inventory.Meter = (*Inventory)(nil)

// Use implements inventory.Meter. A process that the driver lists twice (compute and MPS) counts once, with the larger
// figure.
func (inv *Inventory) Use(slice job.SliceID) (map[int]int64, error) {
	inv.mu.Lock()
	u := inv.units[slice]
	inv.mu.Unlock()
	if u == nil {
		return nil, errkind.Errorf(errkind.NotFound, "slice %s is not on this machine", slice)
	}
	processes, err := u.Processes()
	if err != nil {
		return nil, fmt.Errorf("memory in use on %s: %w", slice, err)
	}
	use := map[int]int64{}
	for _, p := range processes {
		if p.Memory >= 0 {
			use[p.PID] = max(use[p.PID], p.Memory)
		}
	}
	return use, nil
}
