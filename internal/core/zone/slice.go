package zone

import (
	"cmp"
	"slices"

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
	// stale: the node refused several jobs on this view; nothing is asked of it until then or until a view comes that differs.
	stale     quantity.Instant
	staleSlot int
	// sold are the claims on it, asks and plans what was asked for and is not in a view yet.
	sold  []sale
	asks  []*ask
	plans []*plan
	// booked are the places on it of the heads served so far, of all of them when the plan is made.
	booked []protocol.Gap
	// nodeAt is the place of its node among the nodes. surveyed is the time and surveyedClass the class that the last plan saw.
	nodeAt        int
	surveyed      []protocol.Gap
	surveyedClass *market.Class
	// begun: the first gap of the view follows nothing, so it has begun, whatever our clock says of its node's.
	begun bool
	// doubter is the job that was last refused on this view, doubts how many in a row.
	doubter *state
	doubts  int
}

// sale is a claim as its slice sees it.
type sale struct {
	token      job.Token
	job        *state
	start, end quantity.Instant
}

// offered takes in a node's view of a slice. A view older than the one at hand is dropped.
func (z *Zone) offered(in *protocol.Message) {
	v := in.View
	s := z.site(v.Slice.ID)
	switch {
	case s.view == nil:
	case (in.Epoch < s.epoch || in.Epoch == s.epoch && v.Version <= s.view.Version) && !planted.In(planted.OlderOffer):
		return
	default:
		if (s.doubter != nil || z.avoiding.Len() > 0) && !sameView(s.view, v) {
			z.looksAnother(s)
		}
		z.strange = z.strange || s.view.Node != v.Node
	}
	s.view, s.epoch, s.begun = v, in.Epoch, begun(v)
	switch z.floor.Place(&s.floor, &v.Slice) {
	case market.Joined:
		z.reserved.Insert(s.floor.At())
		z.shifted.Insert(s.floor.At())
		z.join(s)
	case market.Sorted:
		z.strange = true
		z.renumber()
		z.join(s)
	case market.Stayed:
	}
	z.setReserved(s)
	for i := 0; i < len(s.plans); i++ {
		p := s.plans[i]
		if slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool {
			return r.Kind == protocol.ForRigid && r.Job == p.job && r.Start == p.start && r.End == p.end
		}) {
			z.dropPlan(p)
			i--
		}
	}
	z.mark(s)
}

// renumber finds the places of the slices with a reservation anew: all are in another order.
func (z *Zone) renumber() {
	clear(z.reserved)
	clear(z.shifted) // the next plan looks at all of them
	for s := range z.offeredSlices() {
		z.setReserved(s)
	}
}

// setReserved notes whether the slice holds a rigid job's place.
func (z *Zone) setReserved(s *slice) {
	if slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid }) {
		z.reserved.Put(s.floor.At())
	} else {
		z.reserved.Drop(s.floor.At())
	}
}

// site finds or makes the slice of this id.
func (z *Zone) site(id job.SliceID) *slice {
	s := z.sites[id]
	if s == nil {
		s = &slice{id: id}
		s.floor.Supply = s
		z.sites[id] = s
	}
	return s
}

// mark says that the slice's free time is no longer what it was.
func (z *Zone) mark(s *slice) {
	if s.view == nil {
		return
	}
	z.replan = true
	z.shifted.Put(s.floor.At())
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

// hold enters a claim of a job at its slices, release takes it out, resell moves its end.
func (z *Zone) hold(st *state, c *protocol.Claim) {
	st.q.held += 1 + len(c.Also)
	z.onSlices(c, func(s *slice) { s.sold = append(s.sold, sale{c.Token, st, c.Start, c.End}) })
}

func (z *Zone) release(st *state, c *protocol.Claim) {
	st.q.held -= 1 + len(c.Also)
	z.onSlices(c, func(s *slice) {
		s.sold = slices.DeleteFunc(s.sold, func(x sale) bool { return x.token == c.Token && x.job == st })
	})
}

func (z *Zone) resell(st *state, c *protocol.Claim) {
	z.onSlices(c, func(s *slice) {
		for i := range s.sold {
			if s.sold[i].token == c.Token && s.sold[i].job == st {
				s.sold[i].end = c.End
			}
		}
	})
}

func (z *Zone) onSlices(c *protocol.Claim, do func(*slice)) {
	s := z.site(c.Slice)
	do(s)
	z.mark(s)
	for _, id := range c.Also {
		s := z.site(id)
		do(s)
		z.mark(s)
	}
}

// sameView says whether two views lead to the same decisions. The start of the first gap moves with the clock.
func sameView(a, b *protocol.SliceView) bool {
	return a.Usable == b.Usable && slices.Equal(a.Reserved, b.Reserved) && slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
		return g.End == h.End && g.Until == h.Until
	})
}

// speed is how fast a job runs on the slice, in parts per thousand; 0 if it can not.
func (s *slice) speed(spec *job.Spec) int64 { return s.floor.Class().SpeedOf(spec) }

// slice finds a slice by its id; nil if no node has offered it.
func (z *Zone) slice(id job.SliceID) *slice {
	if s := z.sites[id]; s != nil && s.view != nil {
		return s
	}
	return nil
}

// free is the slice's time that is not sold: the node's gaps without the claims and asks that its view can not know of
// yet. For anyone it is also without the places of rigid jobs, whether the node knows of them or not; for anyRigid those
// count as free.
func (s *slice) free(now quantity.Instant, whose party, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	if !s.view.Usable || s.stale > now {
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
		out = carve(out, s.sold[i].start, s.sold[i].end, protocol.ForLease)
	}
	for _, a := range s.asks {
		out = carve(out, a.piece.Start, a.piece.End, protocol.ForLease)
	}
	if whose == anyRigid {
		return out
	}
	for _, p := range s.plans {
		out = carve(out, p.start, p.end, protocol.ForRigid)
	}
	for _, b := range s.booked {
		out = carve(out, b.Start, b.End, protocol.ForRigid)
	}
	return out
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
				rest = carveAll(rest, q)
			}
		}
		for _, g := range rest {
			out = join(out, g)
		}
	}
	return out
}

// carveAll takes all that a reservation covers out of ordered gaps; of one that repeats into a gap without an end, all from
// its first time on.
func carveAll(gaps []protocol.Gap, r *protocol.Reservation) []protocol.Gap {
	if len(gaps) == 0 {
		return gaps
	}
	from, to := gaps[0].Start, gaps[len(gaps)-1].End
	for o, hit := timeline.Overlap(r, from, to); hit; o, hit = timeline.Overlap(r, o.End, to) {
		if r.Every != 0 && to == quantity.Never {
			return carve(gaps, o.Start, quantity.Never, r.Kind)
		}
		gaps = carve(gaps, o.Start, o.End, r.Kind)
	}
	return gaps
}

// begun says whether the first gap of a view follows nothing: it began, by the node's clock, when the view was made.
func begun(v *protocol.SliceView) bool {
	return len(v.Gaps) > 0 && !slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool {
		start := v.Gaps[0].Start
		o, hit := timeline.Overlap(&r, start-1, start)
		return hit && o.End == start
	})
}

// carve takes [start, end) out of ordered gaps.
func carve(gaps []protocol.Gap, start, end quantity.Instant, kind protocol.ReservationKind) []protocol.Gap {
	for i := 0; i < len(gaps); i++ {
		g := gaps[i]
		switch {
		case g.End <= start || end <= g.Start:
		case start <= g.Start && g.End <= end:
			gaps = slices.Delete(gaps, i, i+1)
			i--
		case start <= g.Start:
			gaps[i].Start = end
		case g.End <= end:
			gaps[i].End, gaps[i].Until = start, kind
		default:
			gaps[i].End, gaps[i].Until = start, kind
			g.Start = end
			gaps = slices.Insert(gaps, i+1, g)
			i++
		}
	}
	return gaps
}

// join adds a stretch to ordered gaps and merges what touches.
func join(gaps []protocol.Gap, g protocol.Gap) []protocol.Gap {
	i, _ := slices.BinarySearchFunc(gaps, g.Start, func(a protocol.Gap, t quantity.Instant) int { return cmp.Compare(a.Start, t) })
	gaps = slices.Insert(gaps, i, g)
	for i = max(0, i-1); i+1 < len(gaps); {
		if gaps[i].End < gaps[i+1].Start {
			i++
			continue
		}
		if gaps[i+1].End >= gaps[i].End {
			gaps[i].End, gaps[i].Until = gaps[i+1].End, gaps[i+1].Until
		}
		gaps = slices.Delete(gaps, i+1, i+2)
	}
	return gaps
}
