package drive

import (
	"sluice.dev/sluice/internal/core/protocol"
)

// Snapshotter is an actor that can say its durable state in facts: applied to a fresh actor they fold to the same
// digest. Without it a driver recovers from the whole log.
type Snapshotter interface {
	Snapshot(out []protocol.Fact) []protocol.Fact
}

// Party is one actor with its address.
type Party struct {
	Address protocol.Address
	Actor   protocol.Actor
}

// Tick is what the timer says to an actor whose time has come.
func Tick(to protocol.Address) protocol.Message {
	return protocol.Message{Kind: protocol.Tick, From: protocol.Address{Role: protocol.Timer}, To: to}
}
