package host

import (
	"context"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/host/inbox"
)

// Departure is how a machine leaves its cluster for good. Safe for concurrent use.
type Departure struct{ daemon *daemon }

// Leave has the nodes know that this machine is about to be gone for good, and when: they are closed from now on, and what runs has a
// moment (node.Config.TruncateGrace). After an error they may not know it.
func (d Departure) Leave(ctx context.Context, until quantity.Instant) error {
	return d.daemon.machine.Leave(ctx, until)
}

// Remaining is how many subjobs were not handed over: they run, or their homes have not settled their results.
func (d Departure) Remaining(ctx context.Context) (int, error) {
	return inbox.Ask(ctx, d.daemon.inbox, func(quantity.Instant) (n int) {
		for i := range d.daemon.set.Nodes {
			if l, ok := d.daemon.set.Nodes[i].Node.(actor.Departing); ok {
				n += l.Remaining()
			}
		}
		return n
	})
}

// Departed is what a head does about machines that have left for good. Safe for concurrent use.
type Departed struct {
	daemon *daemon
	sender interface {
		Forsake(zones []job.ZoneID, machine job.NodeID)
	}
}

// Forsake lets go of a machine that has left the cluster for good, and whose link is gone: its slices are not sold any more, and what it
// ran is given up once that can't run any more.
func (d Departed) Forsake(machine job.NodeID) {
	var zones []job.ZoneID
	for i := range d.daemon.set.Zones {
		zones = append(zones, d.daemon.set.Zones[i].ID)
	}
	d.daemon.led.stocks.Forget(machine)
	d.sender.Forsake(zones, machine)
}

// Sold is until when the last claim on a machine's slices lasts; 0: none stands.
func (d Departed) Sold(ctx context.Context, machine job.NodeID) (quantity.Instant, error) {
	return inbox.Ask(ctx, d.daemon.inbox, func(quantity.Instant) (until quantity.Instant) {
		for i := range d.daemon.set.Zones {
			if s, ok := d.daemon.set.Zones[i].Zone.(actor.Surveyor); ok {
				until = max(until, s.Survey().Sold(machine))
			}
		}
		return until
	})
}
