// Package executor is the contract of what runs subjobs on one node. Kinds live in folders below; every kind passes
// executortest. An executor is told things with messages (package protocol, kinds Start, Deadline, Stop, Settle,
// Purge) and answers with messages (Started, Exited, Stuck, Settled, Report). It decides nothing about scheduling.
package executor

import (
	"context"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
)

// Executor runs subjobs. Do is idempotent by token: a repeated Start of a subjob that runs or has ended starts nothing
// and repeats the answer. Of subjobs that were settled this holds until the executor is closed: a node starts none that was leased
// in an earlier boot.
type Executor interface {
	// Find looks for subjobs of earlier boots before anything else is done: it fences run directories whose supervisor
	// never came up, so that none can start later, takes over living ones, and reports each with the witness that its
	// lease carries.
	Find(ctx context.Context) ([]Found, error)
	// Do carries out one effect. It returns at once; answers come through the deliver function the kind was made with.
	// witness is the position of the lease's record, stored in the run directory with Start.
	Do(m protocol.Message, witness journal.Position)
	// Isolation says in a few words which containment level holds here, for people.
	Isolation() string
	// Close stops watching. Running subjobs go on.
	Close() error
}

// Snapshot is a stored copy of a work directory.
type Snapshot struct {
	// ID names it: equal ones have one.
	ID string
	// Files and Bytes are its size unpacked; directories and links count as files.
	Files, Bytes int64
}

// Found is a subjob of an earlier boot with its witness.
type Found struct {
	protocol.Found
	Witness journal.Position
}
