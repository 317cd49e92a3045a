package operator

import (
	"time"
)

// renewBy is the time within which a lease of this length must be renewed, else it is given up: two thirds, which leaves a third to stop in
// before another operator may begin.
func renewBy(lease time.Duration) time.Duration {
	return lease * 2 / 3
}

// renewEvery is the pause between two renewals: five are tried in that time.
func renewEvery(lease time.Duration) time.Duration { return lease / 8 }
