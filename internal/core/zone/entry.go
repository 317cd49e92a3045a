package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/federation/visits"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
)

// entry is one job of the zone: what the ledger knows of it, and beside that what the other parts keep.
type entry struct {
	job  home.Job
	zone *Zone
	// floor is what the floor keeps of it, rigid what the planner does; nil unless it is rigid.
	floor market.Job
	rigid *backfill.Job
	// seek is what the search keeps of it; nil where there is none.
	seek *search.Job
	// visits are where it negotiates at nodes, nil until it does; away: what it says of itself there is to be said anew.
	visits *visits.Job
	away   dirty.Mark
	// borrows is how it gets slices of other zones; nil until it may need any.
	borrows *borrower
	// told is what it was told of its wait.
	told foresight.Told
}

// soughtEntry is an entry with all that a job has which searches, in one piece of memory.
type soughtEntry struct {
	entry
	seek  search.Job
	rigid backfill.Job
}

// newEntry makes room for a job.
func (z *Zone) newEntry(spec *job.Spec) *home.Job {
	var e *entry
	if z.search != nil && isRigid(spec) {
		x := &soughtEntry{}
		e = &x.entry
		e.seek, e.rigid = &x.seek, &x.rigid
	} else if e = (&entry{}); z.search != nil {
		e.seek = &search.Job{}
	}
	e.zone, e.job.Beside, e.floor.Demand = z, e, (*demand)(e)
	if e.seek != nil {
		e.seek.Demand = (*seeker)(e)
	}
	if e.rigid != nil {
		e.rigid.Demand = (*rigidDemand)(e)
	}
	e.keepRigid(spec)
	return &e.job
}

func isRigid(spec *job.Spec) bool { return spec != nil && spec.Kind == job.Rigid }

// keepRigid makes room for what the planner keeps of a rigid job.
func (e *entry) keepRigid(spec *job.Spec) {
	if isRigid(spec) && e.rigid == nil {
		e.rigid = &backfill.Job{Demand: (*rigidDemand)(e)}
	}
}

// entryOf is the entry of a job of the zone.
func entryOf(j *home.Job) *entry { return j.Beside.(*entry) }
