// Package fabric is the contract of transports for messages between actors, in one process or between several. Kinds live in folders below;
// every kind passes the suite in fabrictest. A fabric knows addresses, not what messages mean. It may lose, duplicate, delay and
// reorder them: the protocol needs no more than that (docs/crash-table.md).
package fabric

import "sluice.dev/sluice/internal/core/protocol"

// Deliver takes one message that has arrived. It is called from any goroutine, must not block, and may call Send.
type Deliver func(protocol.Message)

// Fabric carries messages. It is safe for concurrent use.
type Fabric interface {
	// Attach makes deliver the receiver of every message to addr. A second receiver for the same address is an error of
	// kind Exists, an attachment after Close one of kind Unavailable.
	Attach(addr protocol.Address, deliver Deliver) error
	// Send hands m over and returns at once. A message to an address where nobody is attached is dropped and counted:
	// whoever needs an answer asks again.
	Send(m protocol.Message)
	// Dropped is how many messages were dropped so far, for whatever reason.
	Dropped() uint64
	// Close ends delivery: no Deliver is called after it has returned. Closing twice is harmless. It must not be called
	// from within a Deliver.
	Close() error
}
