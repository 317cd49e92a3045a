package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// plan is a ForRigid reservation that was asked for and is not in a view yet.
type plan struct {
	ask        uint64
	job        job.ID
	slice      *slice
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

// addPlan and dropPlan keep the list of plans and those of their slices.
func (z *Zone) addPlan(p *plan) {
	z.plans, p.slice.plans = append(z.plans, p), append(p.slice.plans, p)
	z.reopen(p.slice)
}

func (z *Zone) dropPlan(p *plan) {
	same := func(q *plan) bool { return q == p }
	z.plans, p.slice.plans = slices.DeleteFunc(z.plans, same), slices.DeleteFunc(p.slice.plans, same)
	z.reopen(p.slice)
	z.replan = true
}

// start asks the node of a head's place to start it, or returns when to look again. What was refused is not asked again at
// once: the node would be asked for ever about what only it knows.
func (z *Zone) start(now quantity.Instant, h *head, out *protocol.Out) quantity.Instant {
	if z.waits(now, h.job) != market.Eligible { // a head before it took what its queue may hold
		for _, s := range h.place.slices {
			s.booked = slices.DeleteFunc(s.booked, func(g protocol.Gap) bool { return g.Start == h.place.start })
			z.reopen(s)
		}
		h.job.rigid.head = 0
		return quantity.Never
	}
	if again := h.job.rigid.refusedAt.Add(z.cfg.Retry); h.job.rigid.refusedAt != 0 && now < again {
		z.replan = true // its place moves with the clock
		return again
	}
	if slices.ContainsFunc(h.place.slices, func(s *slice) bool { return !s.clearFor(now, h) }) {
		z.replan = true // and the view in which it is clear is on its way
		return quantity.Never
	}
	p, r := atomizer.Fit(ptr(h.job.view()), atomizer.Window{Capacity: h.place.slices[0].view.Slice.Capacity, Speed: h.place.speed, Start: h.place.start, End: h.place.end})
	if r.Why != atomizer.Interested { // place and piece are not of one mind: what is asked for is never empty
		h.job.floor.CountRefusal(r, now)
		h.job.rigid.refusedAt, h.job.rigid.lookedAt = now, 0
		z.replan = true
		return now.Add(z.cfg.Retry)
	}
	var also []job.SliceID
	for _, s := range h.place.slices[1:] {
		also = append(also, s.id)
	}
	// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
	held := uint64(0)
	for _, s := range h.place.slices {
		if r := s.reserved(h.job.Job); r != nil {
			held = r.ID
		}
	}
	z.ask(now, h.job, h.place.slices[0], also, market.Piece{Piece: p, Start: now, End: h.place.end, Speed: h.place.speed}, held, out)
	return quantity.Never
}

// reserve asks the node for a head's place, as far as that is not reserved yet, and returns when to look again. A job's place
// is asked for once each Retry: it may move more often than that, and the market sells nothing of it meanwhile.
func (z *Zone) reserve(now quantity.Instant, h *head, out *protocol.Out) quantity.Instant {
	again := h.job.rigid.reservedAt.Add(z.cfg.Retry)
	early := h.job.rigid.reservedAt != 0 && now < again
	for _, s := range h.place.slices {
		switch {
		case s.keeps(h), slices.ContainsFunc(s.plans, func(p *plan) bool { return p.job == h.job.Job }), !s.clearFor(now, h):
			continue
		case early:
			return again
		}
		h.job.rigid.reservedAt = now
		id := z.newAsk()
		z.addPlan(&plan{ask: id, job: h.job.Job, slice: s, start: h.place.start, end: h.place.end, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
		z.send(out, protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: h.job.Job, Slice: s.id,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.id, Start: h.place.start, End: h.place.end, Job: h.job.Job, Source: "backfill"},
		})
	}
	return quantity.Never
}

// clearFor says whether no other job's reservation, seen or asked for, is in the way of a head's place. What is in the way is
// withdrawn already, or will be when it is seen.
func (s *slice) clearFor(now quantity.Instant, h *head) bool {
	for i := range s.view.Reserved {
		r := &s.view.Reserved[i]
		if r.Start < h.place.end && h.place.start < r.End && r.End > now && r.Kind == protocol.ForRigid && r.Job != h.job.Job {
			return false
		}
	}
	return !slices.ContainsFunc(s.plans, func(p *plan) bool {
		return p.start < h.place.end && h.place.start < p.end && p.job != h.job.Job
	})
}

// dropPlans withdraws reservations that no longer serve a head: those of other jobs, and its own that are not its place.
func (z *Zone) dropPlans(now quantity.Instant, out *protocol.Out) {
	for at := z.reserved.Next(0); at >= 0; at = z.reserved.Next(at + 1) {
		s := z.offeredAt(at)
		for i := range s.view.Reserved {
			r := &s.view.Reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now {
				continue
			}
			if st := z.jobs[r.Job]; st != nil && (st.asking > 0 || st.rigid.head > 0 && z.heads[st.rigid.head-1].place.uses(now, s, r)) {
				continue // it is being turned into a lease right now, or good
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

// uses says whether a reservation on a slice serves the place: it is the place, or the job is about to start there.
func (p *place) uses(now quantity.Instant, s *slice, r *protocol.Reservation) bool {
	return slices.Contains(p.slices, s) && (p.start <= now || p.start == r.Start && p.end == r.End)
}

// keeps says whether the slice has a reservation that is the head's place.
func (s *slice) keeps(h *head) bool {
	for i := range s.view.Reserved {
		r := &s.view.Reserved[i]
		if r.Start == h.place.start && r.End == h.place.end && r.Kind == protocol.ForRigid && r.Job == h.job.Job {
			return true
		}
	}
	return false
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
