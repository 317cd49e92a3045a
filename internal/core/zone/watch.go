package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// The zone's side of its ledger: what it does with what it is told (home.Watcher), and what it says of the slices (home.Supply).

// watcher is the zone as its ledger sees it.
type watcher Zone

func (z *watcher) Make(spec *job.Spec) *home.Job { return (*Zone)(z).newEntry(spec) }

func (z *watcher) Opened(j *home.Job) {
	(*Zone)(z).stirLoans(j)
	z.floor.Activate(&entryOf(j).floor)
	z.sought(j)
}

// sought: what a job's ticket is to look for may be something else than before.
func (z *watcher) sought(j *home.Job) {
	if z.search != nil {
		z.search.Invalidate(entryOf(j).seek)
	}
	if z.tour != nil {
		z.tour.stale.Add(&entryOf(j).away, entryOf(j))
	}
}

func (z *watcher) Closed(j *home.Job) {
	(*Zone)(z).stirLoans(j)
	e := entryOf(j)
	z.floor.Retire(&e.floor)
	z.sought(j)
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}

func (z *watcher) Reopened(j *home.Job) {
	e := entryOf(j)
	e.keepRigid(j.Spec)
	e.rigid.InvalidatePlacement()
	e.floor.Forgive()
	z.floor.DropRecall(&e.floor)
}

func (z *watcher) Changed(j *home.Job) {
	(*Zone)(z).stirLoans(j)
	e := entryOf(j)
	z.floor.Changed(&e.floor)
	z.sought(j)
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}

func (z *watcher) Touched(j *home.Job) {
	(*Zone)(z).stirLoans(j)
	e := entryOf(j)
	z.floor.InvalidateJob(&e.floor)
	z.sought(j)
	if e.rigid != nil {
		z.planner.InvalidateJob(e.rigid)
	}
}

func (z *watcher) Moved(j *home.Job) { entryOf(j).rigid.InvalidatePlacement() }

func (z *watcher) QueuesChanged() { z.planner.Invalidate() }

// Sold enters a claim of a job at its slices, Freed takes it out, Resold moves its end.
func (z *watcher) Sold(j *home.Job, c *protocol.Claim) {
	(*Zone)(z).onSlices(c.Slice, c.Also, func(s *slice) { s.sold = append(s.sold, sale{c.Token, j, c.Start, c.End}) })
}

func (z *watcher) Freed(j *home.Job, c *protocol.Claim, at quantity.Instant) {
	early := at.Add(z.cfg.MinWindow) < c.End
	if z.search != nil {
		z.search.Freed(entryOf(j).seek, c.Token)
	}
	(*Zone)(z).onSlices(c.Slice, c.Also, func(s *slice) {
		s.sold = slices.DeleteFunc(s.sold, func(x sale) bool { return x.token == c.Token && x.job == j })
		s.dropWager(c.Token)
		if early {
			z.floor.EndedEarly(&s.floor)
		}
	})
}

func (z *watcher) Resold(j *home.Job, c *protocol.Claim) {
	(*Zone)(z).onSlices(c.Slice, c.Also, func(s *slice) {
		for i := range s.sold {
			if s.sold[i].token == c.Token && s.sold[i].job == j {
				s.sold[i].end = c.End
			}
		}
	})
}

// Taken ends the doubts about a claim's slices, and the job's ticket, if it has found that place: whatever the node's first word of it is.
func (z *watcher) Taken(j *home.Job, c *protocol.Claim) {
	if z.search != nil {
		z.search.Leased(entryOf(j).seek, c.Token)
	}
	(*Zone)(z).site(c.Slice).trust()
	for _, id := range c.Also {
		(*Zone)(z).site(id).trust()
	}
}

func (z *watcher) TurnedDown(now quantity.Instant, j *home.Job, on []job.SliceID) {
	entryOf(j).floor.Count(market.TurnedDown, now)
	for _, id := range on {
		(*Zone)(z).doubt(now, (*Zone)(z).site(id), j)
	}
}

// Came tells a job how long it is likely to wait.
func (z *watcher) Came(now quantity.Instant, j *home.Job) {
	if z.search != nil {
		entryOf(j).seek.New = true
	}
	if !j.Active() || j.History().Started() != 0 || len(j.Claims()) > 0 || j.Held {
		return
	}
	z.foresight.Tell(&entryOf(j).told, now, z.view.Guess(now, j))
}

func (z *watcher) Paused(j *home.Job) { entryOf(j).told.Void() } // how long its owner pauses it is nobody's estimate

func (z *watcher) Rests(j *home.Job) { z.floor.DropRecall(&entryOf(j).floor) }

func (z *watcher) Began(j *home.Job, at quantity.Instant) { z.foresight.Begun(&entryOf(j).told, at) }

func (z *watcher) Ends(j *home.Job, c *protocol.Claim, r *job.Result, done job.Range, out *protocol.Out) {
	(*Zone)(z).settleWager(j, c, r, done)
	z.floor.TellEnd(&entryOf(j).floor, c, r, done, out)
}

// fleet is what the zone says of its slices.
type fleet Zone

func (z *fleet) Slices() int { return len(z.floor.Slices()) }

func (z *fleet) Node(id job.SliceID) job.NodeID {
	if s := (*Zone)(z).slice(id); s != nil {
		return s.view.Node
	}
	return ""
}

func (z *fleet) Memory(id job.SliceID) quantity.Amount {
	if s := (*Zone)(z).slice(id); s != nil {
		return s.view.Slice.Capacity[trp.Memory]
	}
	if s := (*Zone)(z).siteOf(id); s != nil {
		return s.memory
	}
	return 0
}

func (z *fleet) Barred(id job.SliceID) bool {
	s := (*Zone)(z).slice(id)
	return s != nil && !s.view.Usable
}

func (z *fleet) Largest(spec *job.Spec) quantity.Amount { return (*Zone)(z).largest(spec) }

func (z *fleet) Beyond(j *home.Job) string {
	if why := (*Zone)(z).tooSlow(j); why != "" {
		return why
	}
	return (*Zone)(z).outgrown(j)
}
