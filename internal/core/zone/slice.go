package zone

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
)

// slice is one slice as the zone knows it: the node's last view and the windows announced from it.
type slice struct {
	id job.SliceID
	// view is nil as long as no node has offered the slice: only claims on it are known then.
	view  *protocol.SliceView
	epoch uint32
	class *class
	// at is its place among the slices.
	at      int
	windows []window
	// stale: the node refused several jobs on this view; nothing is asked of it until then or until a view comes that differs.
	stale quantity.Instant
	// sold are the claims on it, asks and plans what was asked for and is not in a view yet.
	sold  []sale
	asks  []*ask
	plans []*plan
	// booked are the places on it of the heads served so far, of all of them when the plan is made.
	booked []protocol.Gap
	// gaps are its free time, good unless moved says that something changed since.
	gaps  []protocol.Gap
	moved bool
	// nodeAt is the place of its node among the nodes. surveyed is the time and surveyedClass the class that the last plan saw.
	nodeAt        int
	surveyed      []protocol.Gap
	surveyedClass *class
	// begun: the first gap of the view follows nothing, so it has begun, whatever our clock says of its node's.
	begun bool
	// stands: a window of it has begun. early: since it was last cleared a subjob on it ended before its time.
	stands, early bool
	// rounds that it has had in the latest instant in which it had one.
	instant quantity.Instant
	rounds  int
	slots   struct{ opens, closes, stale int }
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

// window is one advertised gap.
type window struct {
	id         uint64
	start, end quantity.Instant
	until      protocol.ReservationKind
	// offered: every waiting job has been asked, and since then every job that changed.
	offered bool
	// won: somebody was asked for it, and what is left is not announced yet.
	won bool
	// round that it is in while agents are waited for, 0 if it is in none.
	round uint64
	// planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
	planned quantity.Instant
}

// offered takes in a node's view of a slice. A view older than the one at hand is dropped.
func (z *Zone) offered(in *protocol.Message) {
	v := in.View
	s := z.site(v.Slice.ID)
	switch {
	case s.view == nil:
		s.view, s.epoch = v, in.Epoch
		z.place(s)
	case (in.Epoch < s.epoch || in.Epoch == s.epoch && v.Version <= s.view.Version) && !planted.In(planted.OlderOffer):
		return
	default:
		if (s.doubter != nil || z.avoiding.Len() > 0) && !sameView(s.view, v) {
			z.looksAnother(s)
		}
		z.unsorted = z.unsorted || s.view.Slice.Capacity[trp.Memory] != v.Slice.Capacity[trp.Memory]
		z.strange = z.strange || s.view.Node != v.Node
		if s.view.Usable {
			s.class.usable--
		}
		s.view, s.epoch = v, in.Epoch
	}
	z.classify(s, z.classOf(&v.Slice))
	if s.begun = begun(v); v.Usable {
		s.class.usable++
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

// place gives a new slice its place: by capacity, then id, so that small windows are announced first and small pieces go to
// small slices. What is kept by place moves up behind it.
func (z *Zone) place(s *slice) {
	if z.unsorted {
		z.resort()
	}
	i, _ := slices.BinarySearchFunc(z.slices, s, smaller)
	z.slices = slices.Insert(z.slices, i, s)
	for at := i; at < len(z.slices); at++ {
		z.slices[at].at = at
	}
	for _, set := range []*bitset.Set{&z.dirty, &z.open, &z.reserved, &z.shifted} {
		set.Insert(i)
	}
	z.join(s)
}

// smaller orders slices.
func smaller(a, b *slice) int {
	return cmp.Or(cmp.Compare(a.view.Slice.Capacity[trp.Memory], b.view.Slice.Capacity[trp.Memory]), cmp.Compare(a.id, b.id))
}

// resort brings all slices into order again after capacities have changed.
func (z *Zone) resort() {
	z.unsorted, z.strange = false, true
	slices.SortFunc(z.slices, smaller)
	clear(z.dirty)
	clear(z.open)
	clear(z.reserved)
	clear(z.shifted)
	for i, s := range z.slices {
		s.at = i
		if s.moved {
			z.dirty.Put(i)
		}
		if s.stands {
			z.open.Put(i)
		}
		z.setReserved(s)
	}
}

// setReserved notes whether the slice holds a rigid job's place.
func (z *Zone) setReserved(s *slice) {
	if slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid }) {
		z.reserved.Put(s.at)
	} else {
		z.reserved.Drop(s.at)
	}
}

// site finds or makes the slice of this id.
func (z *Zone) site(id job.SliceID) *slice {
	s := z.sites[id]
	if s == nil {
		s = &slice{id: id}
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
	z.shifted.Put(s.at)
	z.reopen(s)
}

// reopen says that what the market may sell of the slice is no longer what it was.
func (z *Zone) reopen(s *slice) {
	s.moved = true
	z.dirty.Put(s.at)
}

// setStale leaves a slice alone until an instant that is later than now, or no longer if it is 0.
func (z *Zone) setStale(s *slice, until quantity.Instant) {
	s.stale = until
	if until == 0 {
		until = quantity.Never
	}
	z.stales.Set(&s.slots.stale, s, until)
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
func (s *slice) speed(spec *job.Spec) int64 { return s.class.speed(spec) }

// slice finds a slice by its id; nil if no node has offered it.
func (z *Zone) slice(id job.SliceID) *slice {
	if s := z.sites[id]; s != nil && s.view != nil {
		return s
	}
	return nil
}

// room is the slice's time that is not sold, as from now on.
func (z *Zone) room(s *slice, now quantity.Instant) []protocol.Gap {
	if s.moved {
		s.gaps, s.moved = z.free(s, now, anyone, s.gaps), false
	}
	return s.gaps
}

// free is the slice's time that is not sold: the node's gaps without the claims and asks that its view can not know of
// yet. For anyone it is also without the places of rigid jobs, whether the node knows of them or not; for anyRigid those
// count as free.
func (z *Zone) free(s *slice, now quantity.Instant, whose party, out []protocol.Gap) []protocol.Gap {
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
	if whose == anyRigid && z.reserved.Has(s.at) {
		out = s.giveWay(now, out)
	}
	for i := range s.sold {
		out = carve(out, s.sold[i].start, s.sold[i].end, protocol.ForLease)
	}
	for _, a := range s.asks {
		out = carve(out, a.piece.start, a.piece.end, protocol.ForLease)
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

// announce derives the slice's windows from its free time and sets its alarms. A window that only lost time at its front
// because the clock moved on keeps its id and its answers; one that was cut by a grant or grew is announced anew.
func (z *Zone) announce(s *slice, now quantity.Instant) {
	old := s.windows
	next := z.spare[:0]
	for _, g := range z.room(s, now) {
		g.Start = max(g.Start, now)
		if g.End.Sub(g.Start) < z.cfg.MinWindow {
			continue
		}
		w := window{start: g.Start, end: g.End, until: g.Until}
		i := slices.IndexFunc(old, func(o window) bool {
			return o.end == g.End && o.until == g.Until && (o.start == g.Start || o.start <= now && g.Start <= now)
		})
		if i >= 0 {
			w = old[i]
			w.start = g.Start
		} else {
			z.nextWindow++
			w.id = z.nextWindow
		}
		next = append(next, w)
	}
	s.windows, z.spare = next, old
	z.arm(s, now)
}

// arm sets the alarms of a slice by its windows.
func (z *Zone) arm(s *slice, now quantity.Instant) {
	opens, closes := quantity.Never, quantity.Never
	for i := range s.windows {
		w := &s.windows[i]
		if w.start > now {
			opens = min(opens, w.start)
			continue
		}
		if w.end != quantity.Never {
			closes = min(closes, w.end.Add(1-z.cfg.MinWindow))
		}
		if w.planned > now {
			opens = min(opens, w.planned)
		}
	}
	z.opens.Set(&s.slots.opens, s, opens)
	z.closes.Set(&s.slots.closes, s, closes)
}

// standing says whether a window of the slice has begun.
func (s *slice) standing(now quantity.Instant) bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.start <= now })
}

// length is what the window holds from now on, open if its end is not known.
func (w *window) length(now quantity.Instant) time.Duration {
	if w.end == quantity.Never {
		return open
	}
	return min(open-1, w.end.Sub(max(w.start, now)))
}
