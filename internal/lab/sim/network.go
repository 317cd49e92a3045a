package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
)

// Link is what happens to messages on one kind of way. The zero value delivers each at once, in order.
type Link struct {
	// Delay of every message, and the mean of an exponential one on top, which also reorders them.
	Delay, Jitter time.Duration
	// Loss and Double are the chances, in parts per million, that a message never arrives and that it arrives twice.
	Loss, Double int64
}

// Network is what lies between the actors. What a node says to the gate takes the way of ZoneNode; ZoneBidder is the way to
// and from the agents of external jobs.
type Network struct {
	GateZone, ZoneNode, ZoneBidder Link
}

// Which stream of random numbers is for what. Every draw has its own stream, keyed by ids, so that no draw moves another.
const (
	forMessage uint64 = iota + 1
	forFault
	forClock
)

// network carries messages.
type network struct {
	Network
	seed uint64
	// sent counts the messages of each way, from one party to another, which numbers them.
	sent map[[2]int]uint64
}

func (n *network) link(from, to protocol.Role) *Link {
	if from != protocol.Node && to != protocol.Node {
		return &n.GateZone
	}
	return &n.ZoneNode
}

// hit draws something that has a chance in parts per million.
func hit(draw *prng.Stream, ppm int64) bool {
	return int64(draw.IntN(1_000_000)) < ppm
}
