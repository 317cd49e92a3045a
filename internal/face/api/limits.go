package api

import "time"

// Limits of what one call may carry. Requests beyond them are refused with their name.
const (
	// MaxWorkdir is the largest work directory, as a tar.gz, in bytes: 64 MiB.
	MaxWorkdir = 64 << 20
	// MaxRequestID is the longest request id, in bytes.
	MaxRequestID = 128
	// MaxJobs is how many jobs one list answers at most.
	MaxJobs = 10_000
	// MaxWaitNames is how many jobs one WaitJob watches.
	MaxWaitNames = 1000
	// MaxLogPositions is of how many subjobs somebody who follows a log may say where it was.
	MaxLogPositions = 20_000
	// MaxWait bounds one WaitJob.
	MaxWait = 5 * time.Minute
	// DefaultWait is how long a WaitJob without a time goes on.
	DefaultWait = 30 * time.Second
	// MaxCalls is how many calls may be open at once, streams included.
	MaxCalls = 1024
	// MaxUserCalls is how many of them one user may have open who is no admin.
	MaxUserCalls = MaxCalls / 8
	// Rate is how many calls a second are answered over time.
	Rate = 1000
	// Burst is how many calls are answered at once after a rest.
	Burst = 2000
	// MaxKey is the longest key of an agent that is looked at, in bytes.
	MaxKey = 128
	// MaxAnswers and MaxVariants are how many an agent may send in one call.
	MaxAnswers  = 16
	MaxVariants = 4096
	// MaxAgentBytes is how long what an agent says in one call may be.
	MaxAgentBytes = 2 << 20
	// MaxAgentCalls is how many calls of agents may be open at once, apart from MaxCalls: agents wait for most of their lives.
	MaxAgentCalls = 2048

	// How many problems of one request are listed.
	maxProblems = 50
	// The longest name of an option that is looked at, in bytes.
	maxOption = 63
	// Of a body that is arriving this much has to come in this time, in bytes.
	bodyStep = 16 << 10
	bodyTime = 10 * time.Second
	// Who sends less than this in a second makes room for others; who reads less of an answer, beyond what is given
	// everybody, is cut off.
	minRate    = 32 << 10
	answerTime = 30 * time.Second
	// Bodies arrive up to this size many at a time, the rest of longer ones a few at a time.
	smallBody      = 64 << 10
	maxSmallBodies = 512
	// How many calls may wait for a place in which the first part of their body can arrive: none of it is buffered meanwhile.
	maxPatient     = 8192
	maxLongBodies  = 16
	maxAgentBodies = 8
	// A snapshot in JSON is base64, a third longer, and the job file comes on top.
	maxSubmitBytes = MaxWorkdir/3*4 + 8<<20
	// What any other request may have.
	maxCallBytes = 4 << 20
	// How many submissions with their bodies are held in memory at once.
	maxSubmits = 4
	// Streams of one connection, where it can have several; and of all connections each may be a stream of bytes of a file,
	// which needs descriptors too: one in so many, and no fewer than minStreams.
	maxStreams  = 128
	streamShare = 8
	minStreams  = 8
	// One message of a stream of bytes.
	chunk = 64 << 10
	// After a change, how long to gather more before looking again.
	settle = 50 * time.Millisecond
	// mostBring is how long WaitJob holds its answer back for outputs that are on their way from other machines.
	mostBring = 10 * time.Second
)
