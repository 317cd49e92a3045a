package config

import (
	"time"

	"sluice.dev/sluice/internal/edge/strict"
)

// Retention says how long jobs that are over are kept, and how many of them; what comes first counts. 0: as the daemon has it.
type Retention struct {
	// Age is the time since a job's end.
	Age time.Duration
	// Jobs is how many are kept, the newest ends.
	Jobs int64
}

// The bounds of what is kept.
const (
	MinRetention = time.Second
	MaxRetained  = 1_000_000_000
)

// retentionOf reads {age: 168h, jobs: 1000000}; either may be left out.
func retentionOf(v strict.Value) Retention {
	o := v.Object("age", "jobs")
	return Retention{Age: o.Get("age").Duration(MinRetention, MaxTime, 0), Jobs: o.Get("jobs").Integer(1, MaxRetained, 0)}
}
