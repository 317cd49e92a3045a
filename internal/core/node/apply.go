package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Apply folds one fact of this node into durable state. It decides nothing. A fact that does not follow from the ones
// before it is a broken invariant: the journal is not this node's, or we have a bug.
func (n *Node) Apply(f protocol.Fact) { n.apply(&f) }

// apply neither keeps nor changes the fact.
func (n *Node) apply(f *protocol.Fact) {
	n.applying++
	switch f.Kind {
	case protocol.Booted:
		n.sum -= n.metaHash()
		n.epoch = max(n.epoch, f.Epoch)
		if f.Reservation != nil {
			n.lastID = max(n.lastID, f.Reservation.ID)
		}
		n.sum += n.metaHash()
	case protocol.LeaseMade:
		n.applyMade(f)
	case protocol.LeaseGone:
		l := n.lease(f.Token)
		if l == nil {
			invariant.Check(false, "node: fact %d: lease %v is gone but was not there", n.applying, f.Token)
		}
		n.sum -= l.sum
		n.turn(l, leaves)
		n.removeLease(l)
	case protocol.LeaseExtended, protocol.Truncated, protocol.SubjobStarted, protocol.SubjobVacated, protocol.SubjobEnded,
		protocol.ResultSettled:
		l := n.lease(f.Token)
		if l == nil {
			invariant.Check(false, "node: fact %d: kind %d names lease %v, which doesn't exist", n.applying, f.Kind, f.Token)
		}
		n.applyLease(l, f)
		n.resum(l)
		n.stir(l)
	case protocol.ReservationMade:
		n.applyReservation(*f.Reservation)
	case protocol.ReservationGone:
		n.applyReservationGone(f.Reservation.ID)
	case protocol.Quarantined:
		n.applyQuarantine(f)
	case protocol.QuarantineLifted:
		s := n.record(f.Slice)
		n.sum -= s.quarantineHash()
		n.bar(s, false, "", 0, job.Token{})
	case protocol.SliceFailed, protocol.SliceMended:
		s := n.record(f.Slice)
		n.sum -= s.faultHash()
		s.fault = f.Fault
		n.sum += s.faultHash()
		n.show(s)
	default:
		invariant.Check(false, "node: fact %d: kind %d is not a node's", n.applying, f.Kind)
	}
}

// resum takes a lease into the digest as it is now.
func (n *Node) resum(l *lease) {
	sum := l.hash()
	n.sum += sum - l.sum
	l.sum = sum
}

func (n *Node) applyMade(f *protocol.Fact) {
	if n.lease(f.Token) != nil {
		invariant.Check(false, "node: fact %d: token %v is redeemed twice", n.applying, f.Token)
	}
	l := &lease{
		token: f.Token, job: f.Job, epoch: f.Epoch, generation: f.Generation.Number(), zone: f.Zone, slice: f.Slice, also: f.Also, rng: f.Range,
		start: f.Start, end: f.End, demand: f.Demand, peak: f.Peak, plan: f.Plan, rank: f.Rank, cut: f.Text,
	}
	n.dropGrant(f.Token)
	n.addLease(l)
	n.resum(l)
	n.each(l.slice, l.also, func(s *slice) {
		r := l.reservation(s.id)
		inTheWay, free := s.time.Insert(r)
		if !free {
			invariant.Check(false, "node: fact %d: lease %v overlaps %v %d on %s", n.applying, f.Token, inTheWay.Kind, inTheWay.ID, s.id)
		}
		n.show(s)
	})
}

// reservation is the lease's entry in the timeline of one of its slices.
func (l *lease) reservation(id job.SliceID) protocol.Reservation {
	return protocol.Reservation{
		ID: reservationID(l.token), Kind: protocol.ForLease, Slice: id, Start: l.start, End: l.end, Job: l.job, Token: l.token,
	}
}

func (n *Node) applyLease(l *lease, f *protocol.Fact) {
	if f.Kind != protocol.ResultSettled && l.ended() {
		invariant.Check(false, "node: fact %d: kind %d names lease %v, which has ended", n.applying, f.Kind, l.token)
	}
	switch f.Kind {
	case protocol.LeaseExtended:
		n.each(l.slice, l.also, func(s *slice) {
			inTheWay, free := s.time.Extend(reservationID(l.token), f.End)
			if !free {
				invariant.Check(false, "node: fact %d: lease %v can't be extended over %v %d on %s", n.applying, l.token, inTheWay.Kind, inTheWay.ID, s.id)
			}
			n.show(s)
		})
		l.rng, l.end, l.cut = f.Range, f.End, ""
		if f.Peak != (trp.Peak{}) {
			l.peak = f.Peak
		}
	case protocol.Truncated:
		n.each(l.slice, l.also, func(s *slice) {
			ok := s.time.Truncate(reservationID(l.token), f.End)
			if !ok {
				invariant.Check(false, "node: fact %d: lease %v [%d,%d) can't be cut to %d on %s", n.applying, l.token, l.start, l.end, f.End, s.id)
			}
			n.show(s)
		})
		l.end, l.cut = f.End, f.Text
	case protocol.SubjobStarted:
		n.turn(l, began)
		l.at = f.At
	case protocol.SubjobVacated:
		n.free(l)
		n.turn(l, vacates)
	case protocol.SubjobEnded:
		if !l.vacated() {
			n.free(l)
		}
		n.turn(l, over)
		l.result, l.bare = f.Result, f.Flag
	case protocol.ResultSettled:
		n.turn(l, settles)
		l.settling = f.Range
	default: // Apply sends nothing else here
	}
}

// free gives back the time of a lease whose process tree is gone.
func (n *Node) free(l *lease) {
	n.each(l.slice, l.also, func(s *slice) {
		s.time.Remove(reservationID(l.token))
		n.show(s)
	})
}

func (n *Node) applyReservation(r protocol.Reservation) {
	s := n.record(r.Slice)
	n.sum -= n.metaHash()
	n.lastID = max(n.lastID, r.ID)
	n.sum += n.metaHash() + reservationHash(&r)
	s.time.Close(r)
	n.reserved[r.ID] = s
	n.expire(s)
	n.show(s)
}

func (n *Node) applyReservationGone(id uint64) {
	r, s := n.reservation(id)
	if s == nil {
		invariant.Check(false, "node: fact %d: reservation %d is gone but was never made", n.applying, id)
	}
	n.sum -= reservationHash(&r)
	s.time.Reopen(id)
	delete(n.reserved, id)
	n.expire(s)
	n.show(s)
}

// reservation finds a durable reservation by its id, with its slice; nil if there is none.
func (n *Node) reservation(id uint64) (protocol.Reservation, *slice) {
	s := n.reserved[id]
	if s == nil {
		return protocol.Reservation{}, nil
	}
	i := slices.IndexFunc(s.time.Closed(), func(r protocol.Reservation) bool { return r.ID == id })
	if i < 0 {
		invariant.Check(false, "node: reservation %d is not on %s, where it was made", id, s.id)
	}
	return s.time.Closed()[i], s
}

// bar notes whether a slice is quarantined, and for what.
func (n *Node) bar(s *slice, barred bool, why string, at quantity.Instant, holder job.Token) {
	if !s.holder.Zero() {
		n.barred--
	}
	if s.quarantined, s.quarantine, s.barredAt, s.holder = barred, why, at, holder; !holder.Zero() {
		n.barred++
	}
	n.show(s)
}

func (n *Node) applyQuarantine(f *protocol.Fact) {
	s := n.record(f.Slice)
	if s.quarantined {
		n.sum -= s.quarantineHash()
	}
	n.bar(s, true, f.Text, f.At, f.Token)
	n.sum += s.quarantineHash()
	if l := n.lease(f.Token); l != nil && !l.vacated() {
		n.turn(l, strands)
		n.resum(l)
		n.stir(l)
	}
}
