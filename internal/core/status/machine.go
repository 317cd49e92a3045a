package status

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Cluster is how a daemon's cluster stands.
type Cluster struct {
	// Head: the daemon is the head of one, and Machines have joined it, by name.
	Head     bool
	Machines []Machine
	// Removed is how many machines were removed for good, of those that are remembered.
	Removed int
}

// Machine is one that has joined a cluster, as its head knows it.
type Machine struct {
	Name   job.NodeID
	Joined quantity.Instant
	// Up: it is linked. Else Why says what is known.
	Up  bool
	Why string
	// Since its link came up, and Heard when it was heard last; 0: not since the head came up.
	Since, Heard quantity.Instant
	// Measured: Offset is by how much its clock is ahead of the head's, RoundTrip what a message and its answer take.
	Measured          bool
	Offset, RoundTrip time.Duration
	// Build of the machine's daemon.
	Build string
	// Ephemeral: it is gone for good once its daemon ends, at Until at the latest; 0: nobody knows.
	Ephemeral bool
	Until     quantity.Instant
}
