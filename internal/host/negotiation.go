package host

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// MaxWait is how long an agent may wait for an event in one call, AgentGone how long it may stay away between two.
const (
	MaxWait   = 30 * time.Second
	AgentGone = 10 * time.Second
)

// Negotiation is one call of the agent of an external job: what it says, and how long it waits to hear something.
type Negotiation struct {
	Job job.ID
	// Key of the job opens a session. Session is the one that is open, 0 to open one.
	Key     string
	Session uint64
	Answers []Answer
	// Wait for an event at most so long, up to MaxWait.
	Wait time.Duration
}

// Answer is what an agent says to a round.
type Answer struct {
	Round    uint64
	Variants []protocol.Variant
}

// Heard is what an agent is told in return.
type Heard struct {
	Session uint64
	Events  []Event
	// Dropped calls and notices: nobody asked for them in time.
	Dropped int64
	// Notes say what was not taken of the answers.
	Notes []string
	// Over: the job has ended, and with it the session.
	Over bool
}

// Event is a call to a round, or notices of one.
type Event struct {
	Call    *protocol.Call
	Round   uint64
	Notices []protocol.Notice
}
