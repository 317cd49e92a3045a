package wire

import (
	"sluice.dev/sluice/internal/core/protocol"
)

// The kinds this build knows, as the blocks that package protocol numbers them in. A test compares them with its
// constants.

func knownFact(k protocol.FactKind) bool {
	return within(k, protocol.JobAccepted, protocol.JobDeparted) ||
		within(k, protocol.HomeTaken, protocol.HomeLeaving) ||
		within(k, protocol.Booted, protocol.SubjobVacated)
}

func knownMessage(k protocol.Kind) bool {
	return within(k, protocol.Submit, protocol.DrainZone) ||
		within(k, protocol.Reserve, protocol.Release) ||
		within(k, protocol.Adopt, protocol.Surrendered) ||
		within(k, protocol.Offer, protocol.Published) ||
		within(k, protocol.Inventory, protocol.Wished) ||
		within(k, protocol.Attend, protocol.Told) ||
		within(k, protocol.File, protocol.Outdated) ||
		within(k, protocol.Search, protocol.ZoneDigest) ||
		within(k, protocol.Lenders, protocol.Lent) ||
		within(k, protocol.Visiting, protocol.Winning)
}

func within[K ~uint8](k, first, last K) bool { return first <= k && k <= last }
