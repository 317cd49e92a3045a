package config

import "time"

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

// Retention reads {age: 168h, jobs: 1000000}; either may be left out.
func (v value) Retention() Retention {
	o := v.object("age", "jobs")
	return Retention{Age: o.get("age").duration(MinRetention, MaxTime, 0), Jobs: o.get("jobs").integer(1, MaxRetained, 0)}
}
