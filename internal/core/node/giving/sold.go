package giving

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Sold is a lease on a slice: when it ends, and since when it runs (0: it does not). Whole: it is worth nothing before its end.
type Sold struct {
	Token      job.Token
	Job        job.ID
	Generation job.Generation
	Since, End quantity.Instant
	Whole      bool
}

// Node is what it asks its node, and how it tells it the result.
type Node struct {
	// Confirmed: it is known what runs.
	Confirmed bool
	// Sold lists the active leases on a slice.
	Sold func(job.SliceID) []Sold
	// Keep replaces the reservations of a slice.
	Keep func(job.SliceID, []protocol.Reservation)
}
