//go:build kubernetes

package kubernetes

import (
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// ends is when a Pod is gone at the latest: by its own deadline, those of its owners, or its deletion. Never if nothing bounds it.
func (t *tenant) ends(limits func(types.UID) quantity.Instant) quantity.Instant {
	end := quantity.Never
	if t.active > 0 && t.started != 0 {
		end = t.started.Add(t.active + t.grace)
	}
	for _, of := range []types.UID{t.UID, t.owner} {
		if by := limits(of); of != "" && by != quantity.Never {
			end = min(end, by.Add(t.grace))
		}
	}
	if t.leaves != 0 {
		end = min(end, t.leaves)
	}
	return end
}

// hold is the reservation that a Pod makes on its devices.
func (s *scene) hold(t *tenant) protocol.Reservation {
	return protocol.Reservation{Kind: protocol.ForForeign, End: s.until(t), Source: first(t.kind, "pod") + " " + t.Namespace + "/" + t.Name}
}
