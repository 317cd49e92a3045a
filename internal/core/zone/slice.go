package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// slice is one slice as the zone knows it: the node's last view, and what the zone has sold or asked for beyond it.
type slice struct {
	id job.SliceID
	// floor is what the floor keeps of it.
	floor market.Slice
	// view is nil as long as no node has offered the slice: only claims on it are known then.
	view  *protocol.SliceView
	epoch uint32
	// memory of a slice of another zone, on which a job of this one landed last.
	memory quantity.Amount
	// stale: the node refused several jobs on this view; nothing is asked of it until then or until a view comes that differs.
	stale     quantity.Instant
	staleSlot int
	// sold are the claims on it, asks what was asked for and is not in a view yet.
	sold []sale
	asks []*home.Ask
	// kept is what the planner of rigid jobs keeps of it.
	kept backfill.Slice
	// begun: the first gap of the view follows nothing, so it has begun, whatever our clock says of its node's.
	begun bool
	// touched: it is looked at when the step is over, as nobody offers it.
	touched bool
	// gap is what is known of the time that others leave on it, wagers what was asked for and sold there.
	gap    ends.Gap
	ends   *ends.Learner
	wagers []wager
	// doubter is the job that was last refused on this view, doubts how many in a row.
	doubter *home.Job
	doubts  int
}

// sale is a claim as its slice sees it.
type sale struct {
	token      job.Token
	job        *home.Job
	start, end quantity.Instant
}

// offered takes in a node's view of a slice. A view older than the one at hand is dropped.
func (z *Zone) offered(now quantity.Instant, in *protocol.Message, v *protocol.SliceView) {
	s := z.site(v.Slice.ID)
	switch {
	case s.view == nil:
	case (in.Epoch < s.epoch || in.Epoch == s.epoch && v.Version <= s.view.Version) && !planted.In(planted.OlderOffer):
		return
	default:
		if (s.doubter != nil || z.home.Avoiding()) && !sameView(s.view, v) {
			z.looksAnother(s)
		}
		if s.view.Node != v.Node || s.view.Slice.Rack != v.Slice.Rack || s.view.Slice.Block != v.Slice.Block {
			z.planner.Moved()
		}
	}
	s.view, s.epoch, s.begun = v, in.Epoch, begun(v)
	if v.Room != nil && z.search != nil {
		z.search.Ground().Hear(v.Node, v.Room)
	}
	z.planner.Place(&s.kept, z.floor.Place(&s.floor, &v.Slice))
	z.planner.Seen(&s.kept)
	z.watch(now, s)
	z.mark(s)
}

// siteOf finds the slice of this id, nil if nothing is known of it. It remembers which it found last.
func (z *Zone) siteOf(id job.SliceID) *slice {
	if z.last == nil || z.last.id != id {
		z.last = z.sites[id]
	}
	return z.last
}

// site finds or makes the slice of this id.
func (z *Zone) site(id job.SliceID) *slice {
	s := z.siteOf(id)
	if s == nil {
		s = &slice{id: id, ends: z.ends}
		s.floor.Supply, s.kept.Supply = s, s
		z.sites[id], z.last = s, s
	}
	if s.view == nil && !s.touched {
		s.touched = true
		z.foreign = append(z.foreign, s)
	}
	return s
}

// forgetForeign lets go of the slices that this zone's nodes do not offer, and on which it has nothing any more: other zones have any number.
func (z *Zone) forgetForeign() {
	for i, s := range z.foreign {
		if s.touched = false; s.view == nil && len(s.sold)+len(s.asks)+len(s.wagers) == 0 {
			delete(z.sites, s.id)
			if z.last == s {
				z.last = nil
			}
		}
		z.foreign[i] = nil
	}
	z.foreign = z.foreign[:0]
}

// mark says that the slice's free time is no longer what it was.
func (z *Zone) mark(s *slice) {
	if s.view == nil {
		return
	}
	z.planner.InvalidateSlice(&s.kept)
	z.reopen(s)
}

// reopen says that what the market may sell of the slice is no longer what it was.
func (z *Zone) reopen(s *slice) { z.floor.InvalidateSlice(&s.floor) }

// setStale leaves a slice alone until an instant that is later than now, or no longer if it is 0.
func (z *Zone) setStale(s *slice, until quantity.Instant) {
	s.stale = until
	if until == 0 {
		until = quantity.Never
	}
	z.stales.Set(&s.staleSlot, s, until)
	z.mark(s)
}

// onSlices does something to every slice of a claim or an ask, whose free time is no longer what it was then.
func (z *Zone) onSlices(first job.SliceID, also []job.SliceID, do func(*slice)) {
	s := z.site(first)
	do(s)
	z.mark(s)
	for _, id := range also {
		s := z.site(id)
		do(s)
		z.mark(s)
	}
}

// sameView says whether two views lead to the same decisions. The start of the first gap moves with the clock.
func sameView(a, b *protocol.SliceView) bool {
	return a.Usable == b.Usable && a.Slice.Bears == b.Slice.Bears && slices.Equal(a.Reserved, b.Reserved) && slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
		return g.End == h.End && g.Until == h.Until
	})
}

// slice finds a slice by its id; nil if no node has offered it.
func (z *Zone) slice(id job.SliceID) *slice {
	if s := z.siteOf(id); s != nil && s.view != nil {
		return s
	}
	return nil
}

// free is the slice's time that is not sold: the node's gaps without the claims and asks that its view can not know of
// yet. For anyone it is also without the places of rigid jobs, whether the node knows of them or not; for anyRigid those
// count as free.
func (s *slice) free(now quantity.Instant, whose party, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	if !s.view.Usable || s.InDoubt(now) {
		return out
	}
	for i, g := range s.view.Gaps {
		if g.Start = max(g.Start, now); i == 0 && s.begun {
			g.Start = now
		}
		if g.Start < g.End {
			out = append(out, g)
		}
	}
	if whose == anyRigid {
		out = s.giveWay(now, out)
	}
	for i := range s.sold {
		out = timeline.Carve(out, s.sold[i].start, s.sold[i].end, protocol.ForLease)
	}
	for _, a := range s.asks {
		out = timeline.Carve(out, a.Start, a.End, protocol.ForLease)
	}
	if whose == anyRigid {
		return out
	}
	return s.kept.Taken(out)
}

// party is who asks for free time.
type party int

const (
	anyone party = iota
	anyRigid
)

// giveWay adds the places that are kept for rigid jobs to ordered gaps, as far as nothing else has been put over them.
func (s *slice) giveWay(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	for i := range s.view.Reserved {
		r := &s.view.Reserved[i]
		if r.Kind != protocol.ForRigid || r.End <= now {
			continue
		}
		rest := append(make([]protocol.Gap, 0, 4), protocol.Gap{Start: max(r.Start, now), End: r.End})
		for j := range s.view.Reserved {
			if q := &s.view.Reserved[j]; q.Kind != protocol.ForRigid {
				rest = timeline.CarveAll(rest, q)
			}
		}
		for _, g := range rest {
			out = timeline.Join(out, g)
		}
	}
	return out
}

// begun says whether the first gap of a view follows nothing: it began, by the node's clock, when the view was made.
func begun(v *protocol.SliceView) bool {
	return len(v.Gaps) > 0 && !slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool {
		start := v.Gaps[0].Start
		o, hit := timeline.Overlap(&r, start-1, start)
		return hit && o.End == start
	})
}
