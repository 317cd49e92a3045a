package backfill

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// withdrawal is a reservation whose node was asked to withdraw it.
type withdrawal struct {
	id    uint64
	slice *Slice
	again quantity.Instant
}

// bookings are what nodes were asked to reserve for rigid jobs, and to withdraw. What is pending is in the list and with its slice, until
// a view shows it, its node refuses, or its time is over; a withdrawal that is not seen yet is not asked for again.
type bookings struct {
	sale       Sale
	survey     *survey
	retry, ttl time.Duration
	// holding are the slices with a rigid job's reservation.
	holding bitset.Set
	// pending are reservations asked for and not seen in a view yet, withdrawals those asked to be withdrawn; both in order of time.
	pending     []*pending
	withdrawals []withdrawal
}

// addPending and dropPending keep the list of pending requests and those of its slices.
func (b *bookings) addPending(p *pending) {
	b.pending, p.slice.pending = append(b.pending, p), append(p.slice.pending, p)
	b.sale.Reopen(p.slice)
}

func (b *bookings) dropPending(p *pending) {
	same := func(q *pending) bool { return q == p }
	b.pending, p.slice.pending = slices.DeleteFunc(b.pending, same), slices.DeleteFunc(p.slice.pending, same)
	b.sale.Reopen(p.slice)
}

// reserve asks the node for a reserved job's placement, as far as that is not reserved yet, and returns when to look again. A job's place
// is asked for once each Retry: it may move more often than that, and the market sells nothing of it meanwhile. Of a place in doubt nothing
// is asked.
func (b *bookings) reserve(now quantity.Instant, h *reservation, out *protocol.Out) quantity.Instant {
	again := h.job.reservedAt.Add(b.retry)
	early := h.job.reservedAt != 0 && now < again
	wake := quantity.Never
	if h.place.inDoubt(now) { // until that is over, or its time has come
		if h.place.Start > now {
			wake = h.place.Start
		}
		return wake
	}
	for _, s := range h.place.Slices {
		if s.keeps(h) || h.job.Guest != nil && s.takenBy(h.job.Name()) ||
			slices.ContainsFunc(s.pending, func(p *pending) bool { return p.job == h.job.Name() }) {
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
		id := b.sale.NewAsk()
		b.addPending(&pending{ask: id, job: h.job.Name(), slice: s, start: h.place.Start, end: h.place.End, expires: now.Add(b.ttl),
			version: s.Version()})
		b.sale.Send(protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.Node())},
			Body: &protocol.Booking{Ask: id, Slice: s.Name(),
				Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.Name(), Start: h.place.Start, End: h.place.End,
					Job: h.job.Name(), Source: "backfill"}}, Job: h.job.Name(),
		}, out)
	}
	return wake
}

// clearAt is when that will be so if nobody does anything: what is in the way is withdrawn already, or will be when it is seen, and else
// ends by the clock. Never: by the clock alone not.
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

// withdraw gives up reservations that no longer serve a reserved job: those of other jobs, and its own that are not its place.
func (b *bookings) withdraw(now quantity.Instant, served []reservation, out *protocol.Out) {
	for at := b.holding.Next(0); at >= 0; at = b.holding.Next(at + 1) {
		s := b.survey.slices[at]
		reserved := s.Reserved()
		for i := range reserved {
			r := &reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now {
				continue
			}
			if j := b.sale.Job(r.Job); j != nil && (j.Asking() || j.rank > 0 && served[j.rank-1].place.uses(now, s, r)) {
				continue // it is being turned into a lease right now, or good
			}
			if slices.ContainsFunc(b.withdrawals, func(w withdrawal) bool { return w.id == r.ID && w.slice == s }) {
				continue // asked for and not in a view yet
			}
			b.withdrawals = append(b.withdrawals, withdrawal{id: r.ID, slice: s, again: now.Add(b.retry)})
			b.sale.Send(protocol.Message{
				Kind: protocol.Unreserve, To: protocol.Address{Role: protocol.Node, ID: string(s.Node())}, Job: r.Job,
				Body: &protocol.Booking{Reservation: &protocol.Reservation{ID: r.ID}},
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

// seen records a node's report on a slice: which reservations it holds, and whether any is no longer pending.
func (b *bookings) seen(s *Slice) (dropped bool) {
	reserved := s.Reserved()
	if slices.ContainsFunc(reserved, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid }) {
		b.holding.Put(s.At())
	} else {
		b.holding.Drop(s.At())
	}
	for i := 0; i < len(s.pending); i++ {
		p := s.pending[i]
		if slices.ContainsFunc(reserved, func(r protocol.Reservation) bool {
			return r.Kind == protocol.ForRigid && r.Job == p.job && r.Start == p.start && r.End == p.end
		}) {
			b.dropPending(p)
			dropped = true
			i--
		}
	}
	return dropped
}

// remove forgets what a slice holds that is there no more, and what was asked there.
func (b *bookings) remove(s *Slice) {
	b.holding.Remove(s.At())
	b.pending = slices.DeleteFunc(b.pending, func(p *pending) bool { return p.slice == s })
	b.withdrawals = slices.DeleteFunc(b.withdrawals, func(w withdrawal) bool { return w.slice == s })
	s.pending = nil
}

// holds says whether the planner knows a slice as one with a rigid job's reservation.
func (b *bookings) holds(s *Slice) bool { return b.holding.Has(s.At()) }

// refuse records that a node has refused a reservation. It returns for which job, on which slice and which version of its view; ok is false
// if no such reservation was asked for.
func (b *bookings) refuse(ask uint64) (of job.ID, s *Slice, version uint64, ok bool) {
	if p := b.of(ask); p != nil {
		b.dropPending(p)
		return p.job, p.slice, p.version, true
	}
	return "", nil, 0, false
}

// asked is the node of a pending reservation, and the job that it is for; empty if none was asked for under this number.
func (b *bookings) asked(ask uint64) (job.NodeID, job.ID) {
	if p := b.of(ask); p != nil {
		return p.slice.Node(), p.job
	}
	return "", ""
}

// of is the pending reservation that was asked for under a number; nil if there is none.
func (b *bookings) of(ask uint64) *pending {
	if i := slices.IndexFunc(b.pending, func(p *pending) bool { return p.ask == ask && ask != 0 }); i >= 0 {
		return b.pending[i]
	}
	return nil
}

// lapse forgets what nobody has answered in time, and says whether there was anything.
func (b *bookings) lapse(now quantity.Instant) (lapsed bool) {
	for len(b.pending) > 0 && b.pending[0].expires <= now {
		b.dropPending(b.pending[0])
		lapsed = true
	}
	for len(b.withdrawals) > 0 && b.withdrawals[0].again <= now {
		b.withdrawals = slices.Delete(b.withdrawals, 0, 1)
		lapsed = true
	}
	return lapsed
}

// unanswered is when the oldest unanswered request is to be looked at again.
func (b *bookings) unanswered() quantity.Instant {
	wake := quantity.Never
	if len(b.pending) > 0 {
		wake = min(wake, b.pending[0].expires)
	}
	if len(b.withdrawals) > 0 {
		wake = min(wake, b.withdrawals[0].again)
	}
	return wake
}

// reservedFor is the first slice on which time is reserved for a job, with the reservation; nil if there is none.
func (b *bookings) reservedFor(id job.ID) (*Slice, *protocol.Reservation) {
	for at := b.holding.Next(0); at >= 0; at = b.holding.Next(at + 1) {
		if r := b.survey.slices[at].For(id); r != nil {
			return b.survey.slices[at], r
		}
	}
	return nil, nil
}
