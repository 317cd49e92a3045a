package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/borrow"
	"sluice.dev/sluice/internal/core/federation/seek"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
)

// entry is one job of the zone: what the ledger knows of it, and beside that what the other parts keep.
type entry struct {
	job  home.Job
	zone *Zone
	// floor is what the floor keeps of it, rigid what the planner does; nil unless it is rigid.
	floor index.Job
	rigid *backfill.Job
	// seek is what the search for places keeps of it; nil where there is none.
	seek *seek.Job
	// borrows is how it gets slices of other zones; nil until it may need any.
	borrows *borrow.Gang
	// told is its predicted wait.
	told foresight.Told
}

// soughtEntry is an entry with all that a job has which searches, in one piece of memory.
type soughtEntry struct {
	entry
	seek  seek.Job
	rigid backfill.Job
}

func isRigid(spec *job.Spec) bool { return spec != nil && spec.Kind == job.Rigid }

// entryOf is the entry of a job of the zone.
func entryOf(j *home.Job) *entry { return j.Beside.(*entry) }

// sought: what a job's ticket is to look for may be something else than before.
func sought(e *entry) {
	if s := e.zone.seek; s != nil {
		s.Invalidate(e.seek)
	}
}

// touched: what a job answers to windows may be another.
func (z *Zone) touched(j *home.Job) {
	e := entryOf(j)
	z.borrowers.Stir(j, &e.borrows)
	z.floor.InvalidateJob(&e.floor)
	sought(e)
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}
