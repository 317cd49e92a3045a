package swarm

import "sluice.dev/sluice/internal/core/quantity"

// Message is what one place tells another, or a timer tells its own place. It is a value of fixed size with no pointers. The mechanism
// keeps by task (TaskID.Slot) or by place what does not fit into it, and the kind's Bytes say how large it would be on a wire; the sender
// must not look at it again.
type Message struct {
	Kind     uint8
	From, To Place
	Task     TaskID
	A, B, C  int32
	X        uint64
}

// MessageKind is one line of a protocol.
type MessageKind struct {
	Name string
	// Bytes it takes on a wire.
	Bytes int
	// Hop: it asks a node for room, and counts in hopsMean.
	Hop bool
}

// Report is what a node tells its zone once a period if its slices have changed since the last one.
type Report struct {
	Node int32
	// Free slices of the node, as a set of bits.
	Free uint8
}

// Digest is what a zone tells every gate once a period.
type Digest struct {
	Zone int32
	// Sent is the zone's time.
	Sent quantity.Instant
	// Free slices by class: of just that class, not of larger ones.
	Free [MaxClasses]uint16
	// Told is the mechanism's own part (Teller): such as the demand by class of those that search in the zone.
	Told [MaxClasses]uint16
}
