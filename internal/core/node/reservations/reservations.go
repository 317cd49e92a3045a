// Package reservations is what is reserved on a node's slices by others than its leases, and until when: by people (drains, maintenance,
// serving hours), by the zone for a job, and by those who hold a slice of their own right, as the inventory reports. A reservation is in
// its slice's timeline from the fact that makes it to the one that ends it; what others hold, as long as it is reported.
package reservations

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/offers"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// Above numberShift a reservation's id has the number of the node that gave it out, MaxNumber at most; the bits below it count.
const (
	numberShift = 32
	MaxNumber   = 1<<24 - 1
)

// NumberOf is the number of the node that gave out a reservation's id.
func NumberOf(id uint64) int { return int(id >> numberShift & MaxNumber) }

// Config is how reservations behave.
type Config struct {
	// Number of the node.
	Number int
	// Most one slice may have.
	Most int
	// PastTolerance is how long ago a person's reservation may start.
	PastTolerance time.Duration
	// HandOver is how long before the machine is gone for good its slices are closed.
	HandOver time.Duration
}

// Parts of the node that reservations are about.
type Parts struct {
	Record    *record.Recorder
	Inventory *inventory.Inventory
	Holds     *holds.Holds
	Leases    *leases.Leases
	Runner    *leases.Runner
	Offers    *offers.Offers
}

// Reservations holds the reservations of one node.
type Reservations struct {
	cfg   Config
	parts Parts
	last  uint64                      // durable: the last id given out
	on    map[uint64]*inventory.Slice // of every durable one
	sum   uint64                      // of their hashes

	slots map[*inventory.Slice]*slot
	// Slots by the instant at which the first of their reservations that do not recur ends: passings for durable reservations, departures
	// for what others have of the slice (Slice.Others).
	passings, departures alarm.Heap[*slot]
	// until is when the machine is gone for good; 0: that is not known.
	until quantity.Instant

	over []*inventory.Slice // room for those on which one is over, and for the ids of those
	ids  []uint64
}

// slot is the record of a slice on which anything was reserved.
type slot struct {
	slice              *inventory.Slice
	passing, departing int
	others, kept       []protocol.Reservation // all that others hold of it, and all that is kept of it for those who wait (core/reclaim)
	since              []quantity.Instant     // from when on each of both counts, in this order
	closes             quantity.Instant       // when it is closed for good, before its machine is gone; 0: that is not known
}

// New returns the reservations of a node: none.
func New(cfg Config, of Parts) *Reservations {
	return &Reservations{cfg: cfg, parts: of, on: map[uint64]*inventory.Slice{}, slots: map[*inventory.Slice]*slot{}}
}

func (b *Reservations) slot(s *inventory.Slice) *slot {
	x := b.slots[s]
	if x == nil {
		x = &slot{slice: s}
		b.slots[s] = x
	}
	return x
}

// Needs reports whether others hold any of a slice, or some is kept of it for those who wait. Forget drops what is kept of one that is
// gone.
func (b *Reservations) Needs(s *inventory.Slice) bool {
	x := b.slots[s]
	return x != nil && len(x.others)+len(x.kept) > 0
}

// Forget see Needs.
func (b *Reservations) Forget(s *inventory.Slice) {
	if x := b.slots[s]; x != nil {
		b.passings.Set(&x.passing, x, quantity.Never)
		b.departures.Set(&x.departing, x, quantity.Never)
		delete(b.slots, s)
	}
}

// Last is the last id given out, Given notes one that was.
func (b *Reservations) Last() uint64 { return b.last }

// Given see Last.
func (b *Reservations) Given(id uint64) { b.last = max(b.last, id) }

// Sum is their part of the digest.
func (b *Reservations) Sum() uint64 { return b.sum }

func hash(r *protocol.Reservation) uint64 { return r.Mix(record.Hash(record.TagReservation)).Sum() }

// ApplyMade applies a new reservation, ApplyGone the end of one.
func (b *Reservations) ApplyMade(r protocol.Reservation) {
	s := b.parts.Inventory.Record(r.Slice)
	b.Given(r.ID)
	b.sum += hash(&r)
	b.on[r.ID] = s
	s.Close(r)
	b.expire(s)
}

// ApplyGone see ApplyMade.
func (b *Reservations) ApplyGone(id uint64) {
	r, s := b.Of(id)
	if s == nil {
		invariant.Check(false, "node: fact %d: reservation %d is gone but was never made", b.parts.Record.Applied(), id)
	}
	b.sum -= hash(&r)
	delete(b.on, id)
	s.Reopen(id)
	b.expire(s)
}

// Of finds a durable reservation by its id, with its slice; nil if there is none.
func (b *Reservations) Of(id uint64) (protocol.Reservation, *inventory.Slice) {
	s := b.on[id]
	if s == nil {
		return protocol.Reservation{}, nil
	}
	i := slices.IndexFunc(s.Closed(), func(r protocol.Reservation) bool { return r.ID == id })
	if i < 0 {
		invariant.Check(false, "node: reservation %d is not on %s, where it was made", id, s.ID())
	}
	return s.Closed()[i], s
}

// Facts appends those that fold to the reservations of a slice.
func Facts(s *inventory.Slice, out []protocol.Fact) []protocol.Fact {
	for r := range s.Reservations {
		out = append(out, protocol.Fact{Kind: protocol.ReservationMade, Body: &r})
	}
	return out
}

// expire sets the alarm for the durable reservations of a slice that end by themselves.
func (b *Reservations) expire(s *inventory.Slice) {
	first := quantity.Never
	for r := range s.Reservations {
		if r.Every == 0 {
			first = min(first, r.End)
		}
	}
	x := b.slot(s)
	b.passings.Set(&x.passing, x, first)
}

// Prune records that reservations are over. A fact, not a rule of time in Apply, because folding facts must give the same state whenever
// it is done; nobody waits for it, so it needs no timer of its own.
func (b *Reservations) Prune(now quantity.Instant, out *protocol.Out) {
	b.over = b.over[:0]
	for x, ok := b.passings.Due(now); ok; x, ok = b.passings.Due(now) {
		b.over = append(b.over, x.slice)
	}
	slices.SortFunc(b.over, func(a, b *inventory.Slice) int { return cmp.Compare(a.ID(), b.ID()) })
	for _, s := range b.over {
		b.ids = s.Past(now, b.ids[:0])
		for _, id := range b.ids {
			b.end(id, out)
		}
	}
}

func (b *Reservations) end(id uint64, out *protocol.Out) {
	b.parts.Record.Fact(out, protocol.Fact{Kind: protocol.ReservationGone, Body: &protocol.Reservation{ID: id}})
}

// record records a new reservation and returns its id.
func (b *Reservations) record(r protocol.Reservation, out *protocol.Out) uint64 {
	r.ID = max(b.last, uint64(b.cfg.Number)<<numberShift) + 1
	b.parts.Record.Fact(out, protocol.Fact{Kind: protocol.ReservationMade, Slice: r.Slice, Body: &r})
	return r.ID
}

// takeBack takes sold and held time back for a reservation that may truncate it.
func (b *Reservations) takeBack(now quantity.Instant, s *inventory.Slice, r *protocol.Reservation, out *protocol.Out) {
	b.parts.Runner.Truncate(now, s, r, out)
	b.parts.Holds.DropWithin(now, s.ID(), r)
}

// WithdrawOwn withdraws a job's placements that share time with [from, to): it holds that time now.
func (b *Reservations) WithdrawOwn(s *inventory.Slice, own job.ID, from, to quantity.Instant, out *protocol.Out) {
	for _, r := range slices.Clone(s.Closed()) {
		if _, hit := timeline.Overlap(&r, from, to); hit && r.Kind == protocol.ForRigid && r.Job == own {
			b.end(r.ID, out)
		}
	}
}

// Targets are the slices that a person's call means: the named one, or all that there are.
func (b *Reservations) Targets(id job.SliceID) ([]*inventory.Slice, error) {
	if s := b.parts.Inventory.Of(id); s != nil && s.Present() {
		return []*inventory.Slice{s}, nil
	}
	var there []*inventory.Slice
	var names []string
	for _, s := range b.parts.Inventory.All() {
		if s.Present() {
			there, names = append(there, s), append(names, string(s.ID()))
		}
	}
	node := b.parts.Record.Node()
	switch {
	case !b.parts.Inventory.Confirmed():
		return nil, errkind.Errorf(errkind.Unavailable, "node %s is starting and does not know its slices yet; ask again in a moment", node)
	case id != "":
		return nil, errkind.Errorf(errkind.NotFound, "node %s has no slice %q; it has %s", node, id, strings.Join(names, ", "))
	case len(there) == 0:
		return nil, errkind.Errorf(errkind.NotFound, "node %s has no slices", node)
	}
	return there, nil
}

// Reservable returns the slices that a person's reservation selects, or all that is wrong with it.
func (b *Reservations) Reservable(now quantity.Instant, r *protocol.Reservation) ([]*inventory.Slice, error) {
	targets, err := b.Targets(r.Slice)
	if err = errors.Join(err, check(now, r, b.cfg.PastTolerance), b.full(targets, *r)); err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "reserve: %w", err)
	}
	return targets, nil
}

// full says which slices have as many reservations as they may.
func (b *Reservations) full(targets []*inventory.Slice, r protocol.Reservation) error {
	var problems []error
	for _, s := range targets {
		r.Slice = s.ID()
		if len(s.Closed()) >= b.cfg.Most && stands(s, r) == 0 {
			problems = append(problems, errkind.Errorf(errkind.Exhausted,
				"%s has %d reservations, which is as many as it may have; withdraw one first", s.ID(), len(s.Closed())))
		}
	}
	return errors.Join(problems...)
}

// Reserve takes time off the market for others than our jobs. The answer lists the reservations, with what else is at their time. An
// existing one with the same content is answered again, so that a call repeated after a restart takes nothing twice.
func (b *Reservations) Reserve(now quantity.Instant, in *protocol.Booking, out *protocol.Out) ([]protocol.Made, error) {
	if in.Reservation == nil {
		return nil, errkind.Errorf(errkind.Invalid, "reserve: the call has no reservation; say kind, start and end")
	}
	r := *in.Reservation
	r.Start = cmp.Or(r.Start, now)
	r.ID, r.Job, r.Token = 0, "", job.Token{}
	targets, err := b.Reservable(now, &r)
	if err != nil {
		return nil, err
	}
	made := make([]protocol.Made, 0, len(targets))
	for _, s := range targets {
		r.Slice = s.ID()
		m := protocol.Made{ID: stands(s, r), Slice: s.ID()}
		if m.Stood = m.ID != 0; !m.Stood {
			m.ID = b.record(r, out)
		}
		m.Overlaps = overlaps(s, &r, m.ID)
		if r.Truncate {
			b.takeBack(now, s, &r, out)
		}
		made = append(made, m)
	}
	return made, nil
}

// Unreserve withdraws a reservation.
func (b *Reservations) Unreserve(in *protocol.Booking, out *protocol.Out) error {
	if in.Reservation == nil || in.Reservation.ID == 0 {
		return errkind.Errorf(errkind.Invalid, "unreserve: the call names no reservation; give its id")
	}
	id := in.Reservation.ID
	if _, s := b.Of(id); s != nil {
		b.end(id, out)
		return nil
	}
	var ids []string
	for _, s := range b.parts.Inventory.All() {
		for r := range s.Reservations {
			ids = append(ids, fmt.Sprintf("%d (%v on %s)", r.ID, r.Kind, s.ID()))
		}
	}
	there := "there are none"
	if len(ids) > 0 {
		there = "there are " + strings.Join(ids, ", ")
	}
	return errkind.Errorf(errkind.NotFound, "unreserve: node %s has no reservation %d; %s", b.parts.Record.Node(), id, there)
}

// Unnamed is why nothing is given to a job whose name is none: what it ran would have no place of its own.
func Unnamed(id job.ID) string {
	return fmt.Sprintf("it names no job: %.80q is no name; want %s", id, job.NameRule)
}

// ReservePlace keeps a place for a job that its zone names, or withdraws it. A job has one place on a slice at a time: a newer one replaces
// what it overlaps. The zone is not answered but sees it in the Offer that follows.
func (b *Reservations) ReservePlace(now quantity.Instant, in *protocol.Message, booking *protocol.Booking, out *protocol.Out) {
	r := protocol.Reservation{}
	if booking.Reservation != nil {
		r = *booking.Reservation
	}
	if in.Kind != protocol.Reserve {
		q, s := b.Of(r.ID)
		switch {
		case s != nil && q.Kind == protocol.ForRigid && in.Kind == protocol.Unreserve:
			b.end(r.ID, out)
			b.parts.Offers.Again(s)
		case s == nil: // it is gone already, and the zone's view is old
			b.parts.Offers.AgainAll()
		}
		return
	}
	r.Slice = cmp.Or(r.Slice, booking.Slice)
	r = protocol.Reservation{Kind: protocol.ForRigid, Slice: r.Slice, Start: r.Start, End: r.End, Job: in.Job, Source: r.Source}
	s := b.parts.Inventory.Of(r.Slice)
	if s != nil && same(s, r) != 0 && job.ValidID(r.Job) && r.Start < r.End && r.End > now {
		b.parts.Offers.Again(s)
		return
	}
	if why := b.unplaceable(now, s, &r); why != "" {
		b.parts.Offers.Refuse(in, booking.Ask, r.Slice, nil, why, out)
		return
	}
	b.WithdrawOwn(s, r.Job, r.Start, r.End, out)
	b.record(r, out)
	b.parts.Offers.Again(s)
}

// unplaceable is why a job's place can't be kept; empty: it can.
func (b *Reservations) unplaceable(now quantity.Instant, s *inventory.Slice, r *protocol.Reservation) string {
	switch {
	case !job.ValidID(r.Job):
		return Unnamed(r.Job)
	case r.Start >= r.End || r.End <= now:
		return "the reservation is over before it begins"
	case s == nil:
		return string(r.Slice) + " is not a slice of this node"
	case len(s.Closed()) >= b.cfg.Most:
		return fmt.Sprintf("%s has as many reservations as it may have", s.ID())
	}
	if why, ok := s.Usable(); !ok {
		return why
	}
	if q, ok := s.Free(now, max(now, r.Start), r.End, r.Job); !ok {
		return timeline.Describe(&q)
	}
	return ""
}
