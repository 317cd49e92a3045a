package gate

import (
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/protocol"
)

// entitled reports whether a message may be taken in: all that a node has to say to a gate is what slices it has, and nobody else has any.
// What may not is dropped as if it had been lost.
func entitled(in *protocol.Message, s *stock.Stock) bool {
	if in.Kind != protocol.Inventory || in.From.Role != protocol.Node {
		return in.Kind != protocol.Inventory && in.From.Role != protocol.Node
	}
	return s.Takes(in.From.ID, in.Body.(*protocol.Stock).Slices)
}
