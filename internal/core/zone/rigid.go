package zone

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// plan is a ForRigid reservation that was asked for and is not in a view yet.
type plan struct {
	ask        uint64
	job        job.ID
	slice      job.SliceID
	start, end quantity.Instant
	expires    quantity.Instant
	// version of the slice's view that it was decided on.
	version uint64
}

// withdrawal is a reservation whose node was asked to withdraw it.
type withdrawal struct {
	id    uint64
	slice *slice
	again quantity.Instant
}

// replanGain is how much earlier a head must be able to start before its reservation is moved.
const replanGain = time.Second

// planRigid serves the head of the rigid jobs before the market opens, as EASY backfill does: it starts as soon as its
// place is free, and until then its earliest place is reserved, so that what is sold before it can not delay it. All
// other rigid jobs answer windows like everybody else. It returns when to look again: the head's own place is no window
// of the market's, so nobody else would wake the zone when it begins.
func (z *Zone) planRigid(now quantity.Instant, out *protocol.Out) quantity.Instant {
	if slices.ContainsFunc(z.slices, func(s *slice) bool { return s.stale > now }) {
		return quantity.Never // a fresh view is on its way; a plan made now would be moved back and forth
	}
	head, place := z.head(now)
	if head != nil {
		place = z.stay(now, head, place)
	}
	z.dropPlans(now, head, place, out)
	if head == nil {
		return quantity.Never
	}
	p, _ := atomizer.Fit(ptr(head.view()), atomizer.Window{Capacity: place.slices[0].view.Slice.Capacity, Speed: 1000, Start: place.start, End: place.end})
	if place.start <= now {
		var also []job.SliceID
		for _, s := range place.slices[1:] {
			also = append(also, s.id)
		}
		// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
		held := uint64(0)
		for _, s := range place.slices {
			if r := s.reserved(head.Job); r != nil {
				held = r.ID
			}
		}
		z.ask(now, head, place.slices[0], also, piece{Piece: p, start: now, end: place.end}, held, out)
		return quantity.Never
	}
	for _, s := range place.slices {
		if s.keeps(head.Job, place) || slices.ContainsFunc(z.plans, func(p plan) bool { return p.job == head.Job && p.slice == s.id }) {
			continue
		}
		id := z.newAsk()
		z.plans = append(z.plans, plan{ask: id, job: head.Job, slice: s.id, start: place.start, end: place.end, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
		z.send(out, protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: head.Job, Slice: s.id,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.id, Start: place.start, End: place.end, Job: head.Job, Source: "backfill"},
		})
	}
	return place.start
}

// stay is the place that is reserved already, if all of it still is to be had and moving would not let the head start
// clearly earlier; else the place that was found. A place given up for one as good could be lost to somebody on the way.
func (z *Zone) stay(now quantity.Instant, head *state, found place) place {
	for _, s := range z.slices {
		r := s.reserved(head.Job)
		if r == nil || r.Start <= now || r.Start.Sub(found.start) >= replanGain {
			continue
		}
		p := place{start: r.Start, end: r.End}
		for _, s := range z.slices {
			if s.keeps(head.Job, p) && slices.ContainsFunc(z.free(s, now, head.Job, nil), func(g protocol.Gap) bool { return g.Start <= p.start && p.end <= g.End }) {
				p.slices = append(p.slices, s)
			}
		}
		if len(p.slices) == len(found.slices) {
			return p
		}
	}
	return found
}

// place is where and when a rigid job could run.
type place struct {
	slices     []*slice
	start, end quantity.Instant
}

// head is the first rigid job by age that can run somewhere on what is there, with its earliest place.
func (z *Zone) head(now quantity.Instant) (*state, place) {
	var waiting []*state
	for _, s := range z.rigid {
		if len(s.Claims) == 0 && s.asking == 0 && z.waits(now, s) == interested {
			waiting = append(waiting, s)
		}
	}
	slices.SortFunc(waiting, older)
	for _, s := range waiting {
		if p, ok := z.earliest(now, s); ok {
			return s, p
		}
	}
	return nil, place{}
}

// earliest finds the first instant at which enough slices of one node are free for the job's whole walltime; on a tie the
// smallest slices that hold it.
func (z *Zone) earliest(now quantity.Instant, st *state) (best place, found bool) {
	type free struct {
		s    *slice
		gaps []protocol.Gap
	}
	v := st.view()
	length := st.Spec.Walltime + st.Spec.Launch.Grace
	nodes := map[job.NodeID][]free{}
	var order []job.NodeID
	for _, s := range z.slices {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: s.view.Slice.Capacity, Speed: 1000, Start: now, End: quantity.Never})
		if !s.view.Usable || r.Why != atomizer.Interested {
			continue
		}
		if nodes[s.view.Node] == nil {
			order = append(order, s.view.Node)
		}
		nodes[s.view.Node] = append(nodes[s.view.Node], free{s, z.free(s, now, st.Job, nil)})
	}
	slices.Sort(order)
	n := max(1, st.Spec.Slices)
	for _, node := range order {
		var starts []quantity.Instant
		for _, f := range nodes[node] {
			for _, g := range f.gaps {
				starts = append(starts, g.Start)
			}
		}
		slices.Sort(starts)
		for _, t := range starts {
			if found && t >= best.start {
				break
			}
			p := place{start: t, end: t.Add(length)}
			if st.Spec.Walltime == 0 {
				p.end = quantity.Never
			}
			for _, f := range nodes[node] {
				if len(p.slices) < n && slices.ContainsFunc(f.gaps, func(g protocol.Gap) bool { return g.Start <= t && p.end <= g.End }) {
					p.slices = append(p.slices, f.s)
				}
			}
			if len(p.slices) == n {
				best, found = p, true
				break
			}
		}
	}
	return best, found
}

// dropPlans withdraws reservations that no longer serve the head: those of other jobs, and its own that do not hold its
// place.
func (z *Zone) dropPlans(now quantity.Instant, head *state, p place, out *protocol.Out) {
	for _, s := range z.slices {
		for i := range s.view.Reserved {
			r := &s.view.Reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now || head != nil && r.Job == head.Job && slices.Contains(p.slices, s) && (p.start <= now || p.holds(r)) {
				continue
			}
			if st := z.jobs[r.Job]; st != nil && st.asking > 0 {
				continue // it is being turned into a lease right now
			}
			if slices.ContainsFunc(z.withdrawals, func(w withdrawal) bool { return w.id == r.ID && w.slice == s }) {
				continue // asked for and not in a view yet
			}
			z.withdrawals = append(z.withdrawals, withdrawal{id: r.ID, slice: s, again: now.Add(z.cfg.Retry)})
			z.send(out, protocol.Message{
				Kind: protocol.Unreserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Job: r.Job, Reservation: &protocol.Reservation{ID: r.ID},
			})
		}
	}
}

// holds says whether a reservation keeps the whole of a place. One that ends before the place does would let the time
// behind it be sold to others.
func (p *place) holds(r *protocol.Reservation) bool {
	return r.Start <= p.start && p.end <= r.End
}

// keeps says whether the slice has a reservation that keeps the job's place.
func (s *slice) keeps(id job.ID, p place) bool {
	return slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool {
		return r.Kind == protocol.ForRigid && r.Job == id && p.holds(&r)
	})
}

// reserved is the slice's reservation for a rigid job, nil if there is none.
func (s *slice) reserved(id job.ID) *protocol.Reservation {
	for i := range s.view.Reserved {
		if r := &s.view.Reserved[i]; r.Kind == protocol.ForRigid && r.Job == id {
			return r
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }
