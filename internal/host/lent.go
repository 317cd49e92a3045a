package host

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
)

// Lent is what the drivers of pools tell. Safe for concurrent use.
type Lent struct{ daemon *daemon }

// Sighted tells the zone what is known of a pool. It never blocks, and may be lost: it is answered by Lenders.Ordered, or not.
func (l Lent) Sighted(s *supply.Sight) {
	for i := range l.daemon.set.Zones {
		l.daemon.inbox.Put(protocol.Message{Kind: protocol.Sighted, From: lender(s.Pool.Name),
			To: protocol.Address{Role: protocol.Zone, ID: string(l.daemon.set.Zones[i].ID)}, Body: s})
	}
}

// HostWaited records how long jobs of a pool's host have waited for a pilot.
func (l Lent) HostWaited(w *status.HostWait) { l.daemon.observer.HostWaited(w) }
