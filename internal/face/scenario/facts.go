package scenario

import (
	"context"
	"time"
)

// Facts are what is measured of the work that a scenario offers under its first seed.
type Facts struct {
	// Slices of the cluster.
	Slices int
	// Measured says that the rest is known: it is not where published traces are needed and absent.
	Measured bool
	Jobs     int64
	// Load is the work offered over what the slices can do until the last job arrives.
	Load float64
	// RigidShare is the part of the work that can't be cut.
	RigidShare float64
	// MeanGap is the mean idle stretch of a slice where only the rigid work and the reservations run; MeanJob the mean
	// length of a job.
	MeanGap, MeanJob time.Duration
}

// Measure finds the facts.
func (s *Scenario) Measure(_ context.Context, _ string) (Facts, error) {
	return Facts{Slices: s.slices()}, nil
}
