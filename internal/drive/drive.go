// Package drive is what the two drivers of the core have in common with those who call them. Package host is the live
// shell, package sim the simulated one; both feed the same actors and neither takes a scheduling decision.
package drive

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/journal"
)

// Receipt answers a submission.
type Receipt struct {
	Name job.ID
	// Created is false if the same request, or the same name with the same content, was known already.
	Created bool
	// Position of the log at which the acceptance was durable: a second witness that the person holds.
	Position journal.Position
}
