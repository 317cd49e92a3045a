package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
)

// entry is one job of the zone: what the ledger knows of it, and beside that what the other parts keep.
type entry struct {
	home.Job
	zone *Zone
	// floor is what the floor keeps of it, rigid what the planner does; nil unless it is rigid.
	floor market.Job
	rigid *backfill.Job
	// told is what it was told of its wait.
	told foresight.Told
}

// newEntry makes room for a job.
func (z *Zone) newEntry(spec *job.Spec) *home.Job {
	e := &entry{zone: z}
	e.Beside, e.floor.Demand = e, (*demand)(e)
	e.keepRigid(spec)
	return &e.Job
}

// keepRigid makes room for what the planner keeps of a rigid job.
func (e *entry) keepRigid(spec *job.Spec) {
	if spec != nil && spec.Kind == job.Rigid && e.rigid == nil {
		e.rigid = &backfill.Job{Demand: (*rigidDemand)(e)}
	}
}

// entryOf is the entry of a job of the zone.
func entryOf(j *home.Job) *entry { return j.Beside.(*entry) }
