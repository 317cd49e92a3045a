package wire

import "sluice.dev/sluice/internal/core/protocol"

// The kinds this build knows, as the blocks that package protocol numbers them in. A test compares them with its
// constants.

func knownFact(k protocol.FactKind) bool {
	return within(k, protocol.JobAccepted, protocol.JobDrawn) ||
		within(k, protocol.HomeTaken, protocol.HomeArchived) ||
		within(k, protocol.Booted, protocol.QuarantineLifted)
}

func knownMessage(k protocol.Kind) bool {
	return within(k, protocol.Submit, protocol.Delete) ||
		within(k, protocol.Reserve, protocol.Release) ||
		within(k, protocol.Adopt, protocol.Forgotten) ||
		within(k, protocol.Offer, protocol.Published) ||
		within(k, protocol.Inventory, protocol.Ailing) ||
		within(k, protocol.Attend, protocol.Told) ||
		within(k, protocol.File, protocol.Outdated)
}

func within[K ~uint8](k, first, last K) bool { return first <= k && k <= last }
