package slurm

import (
	"sync"
	"time"
)

// Slurm is a provider.Provider.
type Slurm struct {
	o       Options
	cluster cluster
	now     func() time.Time

	mu sync.Mutex
	// moved are the ends that were asked about, and whether Slurm took the job back by them: of jobs that the last look showed.
	moved map[moved]bool
	// since is when jobs of others were first seen to wait for room as they do. given are the pilots that are given back for such jobs: of
	// those that the last look showed.
	since map[wait]time.Time
	given map[begun]bool
	// most is the longest that the partition takes, 0: any; until when that is believed.
	most      time.Duration
	mostUntil time.Time
}

// moved is a job that is over before its limit.
type moved struct {
	id         string
	start, end time.Time
}

// begun is one copy of a pilot: ids are given again.
type begun struct {
	id string
	at time.Time
}

// wait is a job that waits for room: due, it is expected to have begun; else nobody has said when it is to.
type wait struct {
	id  string
	due bool
}
