package zone

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// The zone's side of its planner for rigid jobs: what a job, a slice and the zone itself answer to it (backfill.Demand,
// backfill.Supply, backfill.Sale).

// rigidDemand is a rigid job as the planner sees it.
type rigidDemand entry

// rigidOf is the job that the planner speaks of.
func rigidOf(j *backfill.Job) *home.Job { return &j.Demand.(*rigidDemand).job }

func (d *rigidDemand) Name() job.ID                { return d.job.ID }
func (d *rigidDemand) Active() bool                { return d.job.Active() }
func (d *rigidDemand) View() atomizer.View         { return d.job.View() }
func (d *rigidDemand) Spec() *job.Spec             { return d.job.Spec }
func (d *rigidDemand) Submitted() quantity.Instant { return d.job.Submitted }
func (d *rigidDemand) Waiting() bool {
	return d.job.Active() && len(d.job.Claims()) == 0 && d.job.Progress().Asking() == 0
}
func (d *rigidDemand) Asking() bool { return d.job.Progress().Asking() > 0 }
func (d *rigidDemand) Avoids(s *backfill.Slice) bool {
	return d.job.Backoff().Avoids(sites.Planned(s).Name())
}

func (d *rigidDemand) Waits(now quantity.Instant) explain.Reason {
	return d.zone.caps.Waits(now, &d.job)
}

func (d *rigidDemand) CountRefusal(why atomizer.Refusal, now quantity.Instant) {
	d.floor.Counts().Refuse(why, now)
}

// placer is the zone as its planner sees it.
type placer Zone

func (z *placer) Start(now quantity.Instant, j *backfill.Job, on []*backfill.Slice, p award.Piece, reservation uint64, out *protocol.Out) {
	if backfill.Spread(on) {
		(*Zone)(z).askNodes(now, rigidOf(j), on, p, out)
		return
	}
	var also []job.SliceID
	for _, s := range on[1:] {
		also = append(also, s.Name())
	}
	(*Zone)(z).ask(now, newAsk(rigidOf(j), sites.Planned(on[0]), also, p), reservation, out)
}

func (z *placer) Send(m protocol.Message, out *protocol.Out) { z.home.Claims().Send(out, m) }

func (z *placer) NewAsk() uint64 { return z.home.Claims().NewAsk() }

func (z *placer) Reopen(s *backfill.Slice) { z.sites.Reopen(sites.Planned(s)) }

func (z *placer) Planned(j *backfill.Job) { (*Zone)(z).touched(rigidOf(j)) }

func (z *placer) Job(id job.ID) *backfill.Job {
	if g := z.guests.Find(id); g != nil { // of a gang of our own the part comes first: what is reserved is reserved for that
		return g
	}
	if j := z.home.Book().Job(id); j != nil {
		return entryOf(j).rigid
	}
	return nil
}
