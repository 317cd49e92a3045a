package history

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Row is one run as one line of a log has it. Instants that are not known are quantity.Never.
type Row struct {
	// Run without Start's and End's repairs. Load and Place are those that Book gave out.
	Run
	// Raw is the number of the job under which the scheduler keeps it, or a hash of its id.
	Raw uint64
	// Index is the number of this row in the scheduler's own book, 0 where the log does not have it. Two rows with different ones are
	// different runs.
	Index uint64
	// Elapsed is how long it ran, without suspensions, as the log says; Unknown if it doesn't.
	Elapsed time.Duration
	// NoStart: the log does not say when it started, only that it ran for Elapsed somewhere. Close finds it a start.
	NoStart bool
	// At is where it stands.
	At At

	// number in History.Runs, once it has one. lost: its end is not what the log says.
	number int32
	lost   bool
}

// Unknown is a length of time that the log does not give.
const Unknown time.Duration = -1

// At is a place in a file: the number that Book.File gave for it, and a line from 1.
type At struct{ File, Line uint32 }

// NodeRow is what a log says of a node.
type NodeRow struct {
	Name       string
	Partitions []string
	// Devices it has; nil where the log does not say, empty where it has none.
	Devices []Part
}

// AwayRow is a time in which nodes are not to be had.
type AwayRow struct {
	// Nodes by name; All: every node.
	Nodes []string
	All   bool
	// Away.From is Never where its begin is not known: then it began when the last run on the node ended.
	Away
}

// BatchRow says when the script of a job ran, which the scheduler does not rewrite with the job's own end.
type BatchRow struct {
	Raw        uint64
	Start, End quantity.Instant
}
