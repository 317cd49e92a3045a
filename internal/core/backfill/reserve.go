package backfill

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// pending is a ForRigid reservation that was asked for and is not in a view yet.
type pending struct {
	ask        uint64
	job        job.ID
	slice      *Slice
	start, end quantity.Instant
	expires    quantity.Instant
	// version of the slice's view that it was decided on.
	version uint64
}

// withdrawal is a reservation whose node was asked to withdraw it.
type withdrawal struct {
	id    uint64
	slice *Slice
	again quantity.Instant
}

// addPending and dropPending keep the list of what is asked for and those of its slices.
func (pl *Planner) addPending(p *pending) {
	pl.pending, p.slice.pending = append(pl.pending, p), append(p.slice.pending, p)
	pl.sale.Reopen(p.slice)
}

func (pl *Planner) dropPending(p *pending) {
	same := func(q *pending) bool { return q == p }
	pl.pending, p.slice.pending = slices.DeleteFunc(pl.pending, same), slices.DeleteFunc(p.slice.pending, same)
	pl.sale.Reopen(p.slice)
	pl.replan = true
}

// start asks the node of a reserved job's placement to start it, or returns when to look again. What was refused is not asked again at
// once: the node would be asked for ever about what only it knows.
func (pl *Planner) start(now quantity.Instant, h *reservation, out *protocol.Out) quantity.Instant {
	if h.job.Waits(now) != market.Eligible { // one before it took what its queue may hold
		for _, s := range h.place.Slices {
			s.placed = slices.DeleteFunc(s.placed, func(g protocol.Gap) bool { return g.Start == h.place.Start })
			pl.sale.Reopen(s)
		}
		h.job.rank = 0
		return quantity.Never
	}
	if again := h.job.refusedAt.Add(pl.cfg.Retry); h.job.refusedAt != 0 && now < again {
		pl.replan = true // its place moves with the clock
		return again
	}
	if slices.ContainsFunc(h.place.Slices, func(s *Slice) bool { return !s.clearFor(now, h) }) {
		pl.replan = true // and the view in which it is clear is on its way
		return quantity.Never
	}
	v := h.job.View()
	p, r := atomizer.Fit(&v, atomizer.Window{Capacity: h.place.smallest().Class().Capacity, Speed: h.place.Speed, Start: h.place.Start, End: h.place.End})
	if r.Why != atomizer.Interested { // place and piece are not of one mind: what is asked for is never empty
		h.job.CountRefusal(r, now)
		h.job.refusedAt, h.job.searchedIn = now, 0
		pl.replan = true
		return now.Add(pl.cfg.Retry)
	}
	// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
	held := uint64(0)
	for _, s := range h.place.Slices {
		if r := s.For(h.job.Name()); r != nil {
			held = r.ID
		}
	}
	pl.charge(h)
	pl.sale.Start(now, h.job, h.place.Slices, market.Piece{Piece: p, Start: now, End: h.place.End, Speed: h.place.Speed}, held, out)
	return quantity.Never
}

// reserve asks the node for a reserved job's placement, as far as that is not reserved yet, and returns when to look again. A job's place
// is asked for once each Retry: it may move more often than that, and the market sells nothing of it meanwhile. Of a place in doubt nothing
// is asked.
func (pl *Planner) reserve(now quantity.Instant, h *reservation, out *protocol.Out) quantity.Instant {
	again := h.job.reservedAt.Add(pl.cfg.Retry)
	early := h.job.reservedAt != 0 && now < again
	wake := quantity.Never
	if h.place.inDoubt(now) { // until that is over, or its time has come
		if h.place.Start > now {
			wake = h.place.Start
		}
		return wake
	}
	for _, s := range h.place.Slices {
		if s.keeps(h) || h.job.Guest != nil && s.takenBy(h.job.Name()) || slices.ContainsFunc(s.pending, func(p *pending) bool { return p.job == h.job.Name() }) {
			continue
		}
		switch clear := s.clearAt(now, h); {
		case clear > now:
			wake = min(wake, clear)
			continue
		case early:
			wake = min(wake, again)
			continue
		}
		h.job.reservedAt = now
		id := pl.sale.NewAsk()
		pl.addPending(&pending{ask: id, job: h.job.Name(), slice: s, start: h.place.Start, end: h.place.End, expires: now.Add(pl.cfg.AskTTL), version: s.Version()})
		pl.sale.Send(protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.Node())}, Body: &protocol.Booking{Ask: id, Slice: s.Name(),
				Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.Name(), Start: h.place.Start, End: h.place.End, Job: h.job.Name(), Source: "backfill"}}, Job: h.job.Name(),
		}, out)
	}
	return wake
}

// clearFor says whether no other job's reservation, seen or asked for, is in the way of a reserved job's placement.
func (s *Slice) clearFor(now quantity.Instant, h *reservation) bool { return s.clearAt(now, h) <= now }

// clearAt is when that will be so if nobody does anything: what is in the way is withdrawn already, or will be when it is seen, and else ends by the
// clock. Never: by the clock alone not.
func (s *Slice) clearAt(now quantity.Instant, h *reservation) quantity.Instant {
	at := now
	reserved := s.Reserved()
	for i := range reserved {
		r := &reserved[i]
		if r.Start < h.place.End && h.place.Start < r.End && r.End > now && r.Kind == protocol.ForRigid && r.Job != h.job.Name() {
			at = max(at, r.End)
		}
	}
	if slices.ContainsFunc(s.pending, func(p *pending) bool {
		return p.start < h.place.End && h.place.Start < p.end && p.job != h.job.Name()
	}) {
		return quantity.Never
	}
	return at
}

// dropReservations withdraws reservations that no longer serve a reserved job: those of other jobs, and its own that are not its place.
func (pl *Planner) dropReservations(now quantity.Instant, out *protocol.Out) {
	for at := pl.holding.Next(0); at >= 0; at = pl.holding.Next(at + 1) {
		s := pl.slices[at]
		reserved := s.Reserved()
		for i := range reserved {
			r := &reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now {
				continue
			}
			if j := pl.sale.Job(r.Job); j != nil && (j.Asking() || j.rank > 0 && pl.reserved[j.rank-1].place.uses(now, s, r)) {
				continue // it is being turned into a lease right now, or good
			}
			if slices.ContainsFunc(pl.withdrawals, func(w withdrawal) bool { return w.id == r.ID && w.slice == s }) {
				continue // asked for and not in a view yet
			}
			pl.withdrawals = append(pl.withdrawals, withdrawal{id: r.ID, slice: s, again: now.Add(pl.cfg.Retry)})
			pl.sale.Send(protocol.Message{
				Kind: protocol.Unreserve, To: protocol.Address{Role: protocol.Node, ID: string(s.Node())}, Job: r.Job, Body: &protocol.Booking{Reservation: &protocol.Reservation{ID: r.ID}},
			}, out)
		}
	}
}

// uses says whether a reservation on a slice serves the place: it is the place, or the job is about to start there.
func (p *Placement) uses(now quantity.Instant, s *Slice, r *protocol.Reservation) bool {
	return slices.Contains(p.Slices, s) && (p.Start <= now || p.Start == r.Start && p.End == r.End)
}

// keeps says whether the slice has a reservation that is the job's placement.
func (s *Slice) keeps(h *reservation) bool {
	reserved := s.Reserved()
	for i := range reserved {
		r := &reserved[i]
		if r.Start == h.place.Start && r.End == h.place.End && r.Kind == protocol.ForRigid && r.Job == h.job.Name() {
			return true
		}
	}
	return false
}

// For is the slice's reservation for a rigid job, nil if there is none.
func (s *Slice) For(id job.ID) *protocol.Reservation {
	reserved := s.Reserved()
	for i := range reserved {
		if r := &reserved[i]; r.Kind == protocol.ForRigid && r.Job == id {
			return r
		}
	}
	return nil
}

// Taken takes the reserved time of a slice, and what is asked for there, out of gaps.
func (s *Slice) Taken(gaps []protocol.Gap) []protocol.Gap {
	for _, p := range s.pending {
		gaps = timeline.Carve(gaps, p.start, p.end, protocol.ForRigid)
	}
	for _, g := range s.placed {
		gaps = timeline.Carve(gaps, g.Start, g.End, protocol.ForRigid)
	}
	return gaps
}

// Seen takes in what a node says of a slice now: which reservations it holds, and which are no longer pending.
func (pl *Planner) Seen(s *Slice) {
	reserved := s.Reserved()
	if slices.ContainsFunc(reserved, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid }) {
		pl.holding.Put(s.At())
	} else {
		pl.holding.Drop(s.At())
	}
	for i := 0; i < len(s.pending); i++ {
		p := s.pending[i]
		if slices.ContainsFunc(reserved, func(r protocol.Reservation) bool {
			return r.Kind == protocol.ForRigid && r.Job == p.job && r.Start == p.start && r.End == p.end
		}) {
			pl.dropPending(p)
			i--
		}
	}
}

// Holds says whether the planner knows a slice as one with a rigid job's reservation.
func (pl *Planner) Holds(s *Slice) bool { return pl.holding.Has(s.At()) }

// Refuse takes in that a node has refused a reservation. It says for which job, on which slice and which version of its view; ok is
// false if no such reservation was asked for.
func (pl *Planner) Refuse(ask uint64) (of job.ID, s *Slice, version uint64, ok bool) {
	for _, p := range pl.pending {
		if p.ask == ask && ask != 0 {
			pl.dropPending(p)
			return p.job, p.slice, p.version, true
		}
	}
	return "", nil, 0, false
}

// Lapse forgets what nobody has answered in time.
func (pl *Planner) Lapse(now quantity.Instant) {
	for len(pl.pending) > 0 && pl.pending[0].expires <= now {
		pl.dropPending(pl.pending[0])
	}
	for len(pl.withdrawals) > 0 && pl.withdrawals[0].again <= now {
		pl.withdrawals = slices.Delete(pl.withdrawals, 0, 1)
		pl.replan = true
	}
}

// Unanswered is when the first of what waits for an answer is to be looked at again.
func (pl *Planner) Unanswered() quantity.Instant {
	wake := quantity.Never
	if len(pl.pending) > 0 {
		wake = min(wake, pl.pending[0].expires)
	}
	if len(pl.withdrawals) > 0 {
		wake = min(wake, pl.withdrawals[0].again)
	}
	return wake
}

// ReservedFor is the first slice on which time is reserved for a job, with the reservation; nil if there is none.
func (pl *Planner) ReservedFor(id job.ID) (*Slice, *protocol.Reservation) {
	for at := pl.holding.Next(0); at >= 0; at = pl.holding.Next(at + 1) {
		if r := pl.slices[at].For(id); r != nil {
			return pl.slices[at], r
		}
	}
	return nil, nil
}
