package process

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Took has what a job's subjobs leave take so long to be stored.
func (e *Executor) Took(j job.ID, d time.Duration) { e.margins.took(j, d) }

// Below are the processes of a subjob that are to go on.
var Below = below

// Kept is how many rooms there are for subjobs to come.
func (e *Executor) Kept() int {
	e.rooms.mu.Lock()
	defer e.rooms.mu.Unlock()
	return len(e.rooms.kept)
}
