package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/seek"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The zone's side of its ledger: its reaction to events (home.Watcher), and its answers about slices (home.Supply).

// watcher is the zone as its ledger sees it.
type watcher Zone

// Make makes room for a job.
func (z *watcher) Make(spec *job.Spec) *home.Job {
	var e *entry
	if z.seek != nil && isRigid(spec) {
		x := &soughtEntry{}
		e = &x.entry
		e.seek, e.rigid = &x.seek, &x.rigid
	} else if e = (&entry{}); z.seek != nil {
		e.seek = &seek.Job{}
	}
	e.zone, e.job.Beside, e.floor.Demand = (*Zone)(z), e, (*demand)(e)
	if e.seek != nil {
		z.seek.Make(e.seek, &e.job, &e.floor)
	}
	if e.rigid != nil {
		e.rigid.Demand = (*rigidDemand)(e)
	}
	e.keepRigid(spec)
	return &e.job
}

// keepRigid makes room for what the planner keeps of a rigid job.
func (e *entry) keepRigid(spec *job.Spec) {
	if isRigid(spec) && e.rigid == nil {
		e.rigid = &backfill.Job{Demand: (*rigidDemand)(e)}
	}
}

func (z *watcher) Opened(j *home.Job) {
	z.borrowers.Stir(j, &entryOf(j).borrows)
	z.floor.Activate(&entryOf(j).floor)
	sought(entryOf(j))
}

func (z *watcher) Closed(j *home.Job) {
	z.borrowers.Stir(j, &entryOf(j).borrows)
	e := entryOf(j)
	z.floor.Retire(&e.floor)
	sought(entryOf(j))
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}

func (z *watcher) Reopened(j *home.Job) {
	e := entryOf(j)
	e.keepRigid(j.Spec)
	e.rigid.InvalidatePlacement()
	e.floor.Counts().Clear()
	z.floor.DropRecall(&e.floor)
}

func (z *watcher) Changed(j *home.Job) {
	z.borrowers.Stir(j, &entryOf(j).borrows)
	e := entryOf(j)
	z.floor.Changed(&e.floor)
	sought(entryOf(j))
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}

func (z *watcher) Touched(j *home.Job) { (*Zone)(z).touched(j) }

func (z *watcher) Moved(j *home.Job) { entryOf(j).rigid.InvalidatePlacement() }

func (z *watcher) QueuesChanged() { z.planner.Invalidate() }

func (z *watcher) Sold(j *home.Job, c *protocol.Claim) { z.sites.Sold(j, c) }

func (z *watcher) Freed(j *home.Job, c *protocol.Claim, at quantity.Instant) {
	if z.seek != nil {
		z.seek.Freed(entryOf(j).seek, c.Token)
	}
	z.sites.Freed(j, c, at.Add(z.cfg.MinWindow) < c.End)
}

func (z *watcher) Resold(j *home.Job, c *protocol.Claim) { z.sites.Resold(j, c) }

// Taken ends the doubts about a claim's slices, and the job's ticket if it has found that place, at the first report of its node, whatever
// that is.
func (z *watcher) Taken(j *home.Job, c *protocol.Claim) {
	if z.seek != nil {
		z.seek.Leased(entryOf(j).seek, c.Token)
	}
	z.sites.Trust(c.Slice)
	for _, id := range c.Also {
		z.sites.Trust(id)
	}
}

func (z *watcher) TurnedDown(now quantity.Instant, j *home.Job, on []job.SliceID) {
	entryOf(j).floor.Counts().Add(explain.TurnedDown, now)
	for _, id := range on {
		z.sites.Doubt(now, id, j)
	}
}

// Came gives a job its predicted wait.
func (z *watcher) Came(now quantity.Instant, j *home.Job) {
	if z.seek != nil {
		entryOf(j).seek.Came()
	}
	if !j.Active() || j.History().Started() != 0 || len(j.Claims()) > 0 || j.Paused {
		return
	}
	z.foresight.Tell(&entryOf(j).told, now, z.view.Guess(now, j))
}

func (z *watcher) Paused(j *home.Job) { entryOf(j).told.Void() } // how long its owner pauses it is nobody's estimate

func (z *watcher) Rests(j *home.Job) { z.floor.DropRecall(&entryOf(j).floor) }

func (z *watcher) Began(j *home.Job, at quantity.Instant) { z.foresight.Begun(&entryOf(j).told, at) }

func (z *watcher) Ends(j *home.Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	z.bets.Settle(z.sites.Make(c.Slice).Book(), j, c, r, done)
	z.floor.TellEnd(&entryOf(j).floor, c, r, done, out)
}

// fleet is what the zone says of its slices.
type fleet Zone

func (z *fleet) Slices() int { return len(z.floor.Slices()) }

func (z *fleet) Node(id job.SliceID) job.NodeID {
	if s := z.sites.FindOffered(id); s != nil {
		return s.Node()
	}
	return ""
}

func (z *fleet) Address(id job.SliceID) string {
	if s := z.sites.FindOffered(id); s != nil {
		return s.View().Slice.Address
	}
	return ""
}

func (z *fleet) Memory(id job.SliceID) quantity.Amount {
	if s := z.sites.Find(id); s != nil {
		return s.Memory()
	}
	return 0
}

func (z *fleet) Barred(id job.SliceID) bool {
	s := z.sites.Find(id)
	return s != nil && s.Barred()
}

func (z *fleet) Largest(spec *job.Spec) quantity.Amount { return z.reach.Largest(spec) }

func (z *fleet) Beyond(j *home.Job) string { return z.reach.Beyond(j, &entryOf(j).floor) }
