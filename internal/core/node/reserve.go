package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// remembered is how many answers to persons are kept, so that a call that came twice is carried out once.
const remembered = 64

// request carries out what a person (or, for a rigid job's place, the zone) asks, once for each request id.
func (n *Node) request(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if in.From.Role == protocol.Zone {
		n.reserveRigid(now, in, in.Body.(*protocol.Booking), out)
		return
	}
	request := in.Body.(protocol.Requested).RequestID()
	if i := slices.IndexFunc(n.answers, func(m protocol.Message) bool {
		return request != "" && m.Body.(*protocol.Receipt).Request == request && m.To == in.From
	}); i >= 0 {
		n.send(out, n.answers[i])
		return
	}
	var text string
	var made []protocol.Made
	var err error
	switch in.Kind {
	case protocol.Reserve:
		made, err = n.reserve(now, in.Body.(*protocol.Booking), out)
	case protocol.Unreserve:
		err = n.unreserve(in.Body.(*protocol.Booking), out)
	default:
		text, err = n.release(now, in.Body.(*protocol.Clearance), out)
	}
	reply := protocol.Message{Kind: protocol.Reply, To: in.From, Body: &protocol.Receipt{Request: request, Text: text, Made: made,
		Err: err}}
	n.send(out, reply)
	if err != nil {
		return // what failed may be tried again
	}
	if len(n.answers) == remembered {
		n.answers = slices.Delete(n.answers, 0, 1)
	}
	n.answers = append(n.answers, reply)
}

// reserve takes time off the market for somebody who is not a job of ours. The answer lists the reservations, with what else
// stands at their time. What is there already with the same content is answered again, so that a call repeated after a
// restart takes nothing twice.
func (n *Node) reserve(now quantity.Instant, b *protocol.Booking, out *protocol.Out) ([]protocol.Made, error) {
	if b.Reservation == nil {
		return nil, errkind.Errorf(errkind.Invalid, "reserve: the call has no reservation; say kind, start and end")
	}
	r := *b.Reservation
	if r.Start == 0 {
		r.Start = now
	}
	r.ID, r.Job, r.Token = 0, "", job.Token{}
	targets, err := n.reservable(now, &r)
	if err != nil {
		return nil, err
	}
	made := make([]protocol.Made, 0, len(targets))
	for _, s := range targets {
		r.Slice = s.id
		m := protocol.Made{ID: n.stands(s, r), Slice: s.id}
		if m.Stood = m.ID != 0; !m.Stood {
			m.ID = n.make(r, out)
		}
		m.Overlaps = n.overlaps(s, &r, m.ID)
		if r.Truncate {
			n.makeWay(now, s, &r, out)
		}
		made = append(made, m)
	}
	return made, nil
}

// reservable are the slices that r means, or everything that is wrong with it.
func (n *Node) reservable(now quantity.Instant, r *protocol.Reservation) ([]*slice, error) {
	targets, err := n.targets(r.Slice)
	if err = errors.Join(err, n.checkReservation(now, r), n.room(targets, *r)); err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "reserve: %w", err)
	}
	return targets, nil
}

// mostOverlaps bounds those that are told of one reservation.
const mostOverlaps = 16

// overlaps are people's other reservations on a slice that share time with r, the first ones.
func (n *Node) overlaps(s *slice, r *protocol.Reservation, own uint64) (list []protocol.Reservation) {
	for _, q := range s.time.Closed() {
		if q.ID == own || soft(q.ID) || q.Kind == protocol.ForRigid || len(list) == mostOverlaps {
			continue
		}
		// One of two that repeat is looked at for as long as the other's first occurrence: who reserves serving hours twice has
		// them meet there.
		if _, hit := timeline.Overlap(&q, r.Start, r.End); hit {
			list = append(list, q)
		} else if _, hit := timeline.Overlap(r, q.Start, q.End); hit {
			list = append(list, q)
		}
	}
	return list
}

// targets are the slices a call means: the named one, or all that the inventory has.
func (n *Node) targets(id job.SliceID) ([]*slice, error) {
	if s := n.slice(id); s != nil && s.known {
		return []*slice{s}, nil
	}
	var known []*slice
	var names []string
	for _, s := range n.slices {
		if s.known {
			known, names = append(known, s), append(names, string(s.id))
		}
	}
	switch {
	case !n.confirmed:
		return nil, errkind.Errorf(errkind.Unavailable, "node %s is starting and does not know its slices yet; ask again in a moment",
			n.cfg.ID)
	case id != "":
		return nil, errkind.Errorf(errkind.NotFound, "node %s has no slice %q; it has %s", n.cfg.ID, id, strings.Join(names, ", "))
	case len(known) == 0:
		return nil, errkind.Errorf(errkind.NotFound, "node %s has no slices", n.cfg.ID)
	}
	return known, nil
}

// checkReservation lists everything that is wrong with a person's reservation.
func (n *Node) checkReservation(now quantity.Instant, r *protocol.Reservation) error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, errkind.Errorf(errkind.Invalid, format, args...))
	}
	switch r.Kind {
	case protocol.ForDrain, protocol.ForMaintenance, protocol.ForReclaim, protocol.ForServing, protocol.ForGeometry, protocol.ForOwner:
	default:
		problem("kind %v (%d) can't be reserved by people; use drain, maintenance, reclaim, serving, geometry or owner", r.Kind, r.Kind)
	}
	length := r.End.Sub(r.Start)
	switch {
	case r.End <= r.Start:
		problem("it ends at %s, which is not after its start at %s", clock(r.End), clock(r.Start))
	case r.Every == 0 && r.End <= now:
		problem("it ended at %s, and it is %s now", clock(r.End), clock(now))
	case r.Every == 0 && now.Sub(r.Start) > n.cfg.PastTolerance:
		problem("it starts at %s, %v ago; start it now or later", clock(r.Start), now.Sub(r.Start))
	}
	switch {
	case !r.Calendar.None():
		if err := r.Calendar.Check(); err != nil {
			problems = append(problems, err)
		} else if !timeline.Sound(r) {
			problem("it is not the first occurrence of its calendar, which begins on day %d", r.Calendar.Date)
		}
	case r.Calendar != (civil.Calendar{}):
		problem("its calendar has no step; give one, or no calendar")
	case r.Every < 0:
		problem("it repeats every %v; give a positive time, or 0 for once", r.Every)
	case r.Every > 0 && r.End == quantity.Never:
		problem("it repeats every %v but has no end; give one", r.Every)
	case r.Every > 0 && r.Every < timeline.MinEvery:
		problem("it repeats every %v; the shortest is %v", r.Every, timeline.MinEvery)
	case r.Every > 0 && r.Every < length:
		problem("it repeats every %v but lasts %v; make it shorter or repeat it less often", r.Every, length)
	}
	return errors.Join(problems...)
}

// room says which slices have as many reservations as they may.
func (n *Node) room(targets []*slice, r protocol.Reservation) error {
	var problems []error
	for _, s := range targets {
		r.Slice = s.id
		if len(s.time.Closed()) >= n.cfg.MaxReservations && n.stands(s, r) == 0 {
			problems = append(problems, errkind.Errorf(errkind.Exhausted,
				"%s has %d reservations, which is as many as it may have; withdraw one first", s.id, len(s.time.Closed())))
		}
	}
	return errors.Join(problems...)
}

// same returns the id of a standing reservation with the same content, 0 if there is none.
func (n *Node) same(s *slice, r protocol.Reservation) uint64 {
	for _, q := range s.time.Closed() {
		if r.ID = q.ID; q == r && !soft(q.ID) {
			return q.ID
		}
	}
	return 0
}

// stands is same for people, whose "from now on" said twice is one reservation: one that does not repeat may have begun
// earlier if it ends with r.
func (n *Node) stands(s *slice, r protocol.Reservation) uint64 {
	for _, q := range s.time.Closed() {
		p := r
		if p.ID = q.ID; r.Every == 0 && q.Start < r.Start {
			p.Start = q.Start
		}
		if p == q && !soft(q.ID) {
			return q.ID
		}
	}
	return 0
}

// make records a new reservation and returns its id.
func (n *Node) make(r protocol.Reservation, out *protocol.Out) uint64 {
	r.ID = max(n.lastID, uint64(n.cfg.Number)<<reservationShift) + 1
	n.fact(out, protocol.Fact{Kind: protocol.ReservationMade, Slice: r.Slice, Reservation: &r})
	return r.ID
}

// unreserve withdraws a reservation.
func (n *Node) unreserve(b *protocol.Booking, out *protocol.Out) error {
	if b.Reservation == nil || b.Reservation.ID == 0 {
		return errkind.Errorf(errkind.Invalid, "unreserve: the call names no reservation; give its id")
	}
	if _, s := n.reservation(b.Reservation.ID); s == nil {
		var ids []string
		for _, s := range n.slices {
			for _, r := range s.time.Closed() {
				if !soft(r.ID) {
					ids = append(ids, fmt.Sprintf("%d (%v on %s)", r.ID, r.Kind, s.id))
				}
			}
		}
		there := "there are none"
		if len(ids) > 0 {
			there = "there are " + strings.Join(ids, ", ")
		}
		return errkind.Errorf(errkind.NotFound, "unreserve: node %s has no reservation %d; %s", n.cfg.ID, b.Reservation.ID, there)
	}
	n.fact(out, protocol.Fact{Kind: protocol.ReservationGone, Reservation: &protocol.Reservation{ID: b.Reservation.ID}})
	return nil
}

// reserveRigid keeps a place for the head rigid job, or withdraws it. A job has one place on a slice at a time: a newer
// one replaces what it overlaps. The zone is not answered but sees it in the Offer that follows.
func (n *Node) reserveRigid(now quantity.Instant, in *protocol.Message, b *protocol.Booking, out *protocol.Out) {
	r := protocol.Reservation{}
	if b.Reservation != nil {
		r = *b.Reservation
	}
	if in.Kind != protocol.Reserve {
		q, s := n.reservation(r.ID)
		switch {
		case s != nil && q.Kind == protocol.ForRigid && in.Kind == protocol.Unreserve:
			n.fact(out, protocol.Fact{Kind: protocol.ReservationGone, Reservation: &protocol.Reservation{ID: r.ID}})
			s.shown = nil
		case s == nil: // it is gone already, and the zone's view is old
			n.showAll()
		}
		return
	}
	if r.Slice == "" {
		r.Slice = b.Slice
	}
	r = protocol.Reservation{Kind: protocol.ForRigid, Slice: r.Slice, Start: r.Start, End: r.End, Job: in.Job, Source: r.Source}
	s := n.slice(r.Slice)
	why := ""
	switch {
	case !job.ValidID(r.Job):
		why = unnamed(r.Job)
	case r.Start >= r.End || r.End <= now:
		why = "the reservation is over before it begins"
	case s == nil:
		why = string(r.Slice) + " is not a slice of this node"
	case n.same(s, r) != 0:
		n.showAgain(s)
		return
	case len(s.time.Closed()) >= n.cfg.MaxReservations:
		why = fmt.Sprintf("%s has as many reservations as it may have", s.id)
	default:
		if w, ok := n.usable(s); !ok {
			why = w
		} else if q, ok := s.time.Free(now, max(now, r.Start), r.End, r.Job); !ok {
			why = describe(&q)
		}
	}
	if why != "" {
		n.refuse(in, b.Ask, r.Slice, nil, why, out)
		return
	}
	n.withdrawOwn(s, r.Job, r.Start, r.End, out)
	n.make(r, out)
	s.shown = nil
}

// showAll lets every slice be offered whatever has changed.
func (n *Node) showAll() {
	for _, s := range n.slices {
		n.showAgain(s)
	}
}
