package status

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

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
}
