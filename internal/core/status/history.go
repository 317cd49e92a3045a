package status

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Output is what one committed subjob has written.
type Output struct {
	// Token is zero where the job's history does not go back to the subjob, and it wrote nothing.
	Token job.Token
	Range job.Range
	// Member of a gang over several nodes that wrote it; 0 is the first, and what is no gang's.
	Member int
	// Path of its folder; empty: it wrote nothing, and has none.
	Path  string
	Files []string
	Bytes int64
	// Lost is why it can't be had, though it counts; empty: it can, and the rest is set.
	Lost string
}

// History of all slices over a stretch of time.
type History struct {
	From, To quantity.Instant
	Slices   []SliceHistory
}

// SliceHistory is what happened on one slice, in order of start.
type SliceHistory struct {
	Slice protocol.Slice
	Spans []Span
}

// Span is one stretch of a slice's time: a lease (Kind ForLease, with Job and the part committed), another reservation,
// or a window that nobody took (Kind 0).
type Span struct {
	Kind       protocol.ReservationKind
	Start, End quantity.Instant
	Job        job.ID
	Token      job.Token
	Range      job.Range
	Committed  job.Range
	Outcome    string
	// Until says what ends an empty window.
	Until protocol.ReservationKind
	// Used is the time the process really ran within a lease.
	UsedStart, UsedEnd quantity.Instant
	// FirstProgress is when the first unit was reported complete, 0 if that is not known.
	FirstProgress quantity.Instant
}

// About is what the daemon is and where it stands.
type About struct {
	Version, Commit, Go string
	Node                job.NodeID
	Zones               []job.ZoneID
	Nodes               []job.NodeID
	DataDir, Listen     string
	Mechanism, Policy   string
	Isolation           string
	Inventory           string
	SingleUser          bool
	Started             quantity.Instant
	Uptime              time.Duration
	JournalBytes        int64
	JournalSeq          uint64
	// Trouble is what keeps the daemon from working (a full disk), empty if nothing.
	Trouble string
}
