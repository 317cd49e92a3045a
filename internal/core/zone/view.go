package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/view"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// The zone's side of its view: what floor, planner, slices and the learner of waits answer to it (view.Floor, view.Planner,
// view.Slices, view.Waits). All of it is only read.

// viewSource is the zone as its view sees it.
type viewSource Zone

// parts are what the view reads.
func (z *viewSource) parts() view.Parts {
	p := view.Parts{Ledger: z.home, Floor: z, Planner: z, Slices: z, Waits: z, Loans: (*asking)(z)}
	if z.cfg.Search != nil {
		p.Tickets = (*seeking)(z)
	}
	return p
}

func (z *viewSource) Classes() []*window.Class               { return z.floor.Classes() }
func (z *viewSource) Slices() []*window.Slice                { return z.floor.Slices() }
func (z *viewSource) Open() int                              { return z.floor.Open() }
func (z *viewSource) Look(now quantity.Instant) *market.Look { return z.floor.Look(now) }
func (z *viewSource) Stats() status.Negotiation              { return z.floor.Stats() }
func (z *viewSource) Counts(j *home.Job) explain.Counts      { return z.floor.Counts(&entryOf(j).floor) }
func (z *viewSource) Losses(j *home.Job) []status.Loss       { return entryOf(j).floor.Losses().List() }
func (z *viewSource) Attended(j *home.Job) bool              { return z.floor.Attended(&entryOf(j).floor) }
func (z *viewSource) Told(j *home.Job) foresight.Told        { return entryOf(j).told }
func (z *viewSource) Record() status.Foresight               { return z.foresight.Record() }
func (z *viewSource) Asks(s *window.Slice) []*home.Ask       { return sites.Of(s).Asks() }

// Holder is the job whose claim on a slice has begun: a claim stands until its result is known.
func (z *viewSource) Holder(now quantity.Instant, s *window.Slice) (holder job.ID, end quantity.Instant) {
	for _, sold := range sites.Of(s).Sold() {
		if sold.Start <= now {
			return sold.Job.ID, sold.End
		}
	}
	return "", 0
}

func (z *viewSource) Seen(s *window.Slice) *protocol.SliceView { return sites.Of(s).View() }

func (z *viewSource) Planned(j *home.Job) (view.Place, bool) {
	return placeOf(entryOf(j).rigid.Placement())
}

func (z *viewSource) Fit(j *home.Job, c *window.Class, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	return z.floor.Estimator().Fit(&entryOf(j).floor, c, start, end)
}

func (z *viewSource) Rank(now quantity.Instant, j *home.Job) status.Rank {
	return z.floor.Rank(now, &entryOf(j).floor)
}

func (z *viewSource) Declining(j *home.Job) (refusal atomizer.Refusal, text string) {
	return z.floor.Declining(&entryOf(j).floor)
}

func (z *viewSource) Reserves(j *home.Job) bool {
	return z.cfg.Rigid.Lines(j.Width()) && z.planner.Reserved() < z.cfg.Rigid.Reserve
}

func (z *viewSource) ReservedFor(id job.ID) (on job.SliceID, from quantity.Instant, ok bool) {
	s, r := z.planner.ReservedFor(id)
	if r == nil {
		return "", 0, false
	}
	return s.Name(), r.Start, true
}

// Search finds the free time of every slice once.
func (z *viewSource) Search(now quantity.Instant) func(j *home.Job) (view.Place, bool) {
	nodes := z.planner.Nodes()
	free := make([][]protocol.Gap, len(z.floor.Slices()))
	for _, s := range z.floor.Slices() {
		free[s.At()] = s.Shown(now)
	}
	at := func(s *backfill.Slice) []protocol.Gap { return free[s.At()] }
	return func(j *home.Job) (view.Place, bool) {
		return placeOf(z.planner.Search(now, entryOf(j).rigid, nodes, at))
	}
}

// placeOf is what of a placement people ask for.
func placeOf(p backfill.Placement, ok bool) (view.Place, bool) {
	return view.Place{Start: p.Start, Speed: p.Speed}, ok
}

func (z *viewSource) Interval(now quantity.Instant) (interval time.Duration, known bool) {
	return z.foresight.Interval(now)
}

func (z *viewSource) Range(now quantity.Instant, t foresight.Told) (early, late quantity.Instant) {
	return z.foresight.Range(now, t)
}
