package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
)

// entry is one job of the zone: what the ledger knows of it, and beside that what the other parts keep.
type entry struct {
	Job
	zone *Zone
	// floor is what the floor keeps of it, rigid what the planner does; nil unless it is rigid.
	floor market.Job
	rigid *backfill.Job
	// foreseen is what it was told of its wait.
	foreseen foreseen
}

// newEntry is the job of a record.
func (z *Zone) newEntry(q *Queue, r *protocol.Record) *Job {
	e := &entry{zone: z}
	e.Beside, e.floor.Demand = e, (*demand)(e)
	e.fill(q, r)
	e.keepRigid()
	return &e.Job
}

// keepRigid makes room for what the planner keeps of a rigid job.
func (e *entry) keepRigid() {
	if e.Spec != nil && e.Spec.Kind == job.Rigid && e.rigid == nil {
		e.rigid = &backfill.Job{Demand: (*rigidDemand)(e)}
	}
}

// entryOf is the entry of a job of the zone.
func entryOf(j *Job) *entry { return j.Beside.(*entry) }
