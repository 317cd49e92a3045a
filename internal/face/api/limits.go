package api

import "time"

// Limits of what one call may carry. Requests beyond them are refused with their name.
const (
	// MaxSnapshot is the largest work directory, as a tar.gz, in bytes: 64 MiB.
	MaxSnapshot = 64 << 20
	// MaxRequestID is the longest request id, in bytes.
	MaxRequestID = 128
	// MaxJobs is how many jobs one list answers at most.
	MaxJobs = 10_000
	// MaxWaitNames is how many jobs one WaitJob watches.
	MaxWaitNames = 1000
	// MaxWait bounds one WaitJob.
	MaxWait = 5 * time.Minute
	// DefaultWait is how long a WaitJob goes on that says nothing.
	DefaultWait = 30 * time.Second
	// MaxCalls is how many calls may be open at once, streams included.
	MaxCalls = 1024
	// Rate is how many calls a second are answered over time.
	Rate = 1000
	// Burst is how many calls are answered at once after a rest.
	Burst = 2000

	// A snapshot in JSON is base64, a third longer, and the job file comes on top.
	maxSubmitBytes = MaxSnapshot/3*4 + 8<<20
	// What any other request may have.
	maxCallBytes = 4 << 20
	// How many submissions with their bodies are held in memory at once.
	maxSubmits = 4
	// One message of a stream of bytes.
	chunk = 64 << 10
	// After a change, how long to gather more before looking again.
	settle = 50 * time.Millisecond
)
