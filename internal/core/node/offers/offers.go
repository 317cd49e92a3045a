// Package offers is what a node tells its zone of each slice: a view whenever its gaps have changed. No gap is offered that lies on a lease
// or a hold. Invariant, after each Offer: what was told last of a slice holds until it changes, and has all free time that begins within
// half the horizon.
package offers

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config is to whom slices are offered, and how far ahead.
type Config struct {
	Zone            job.ZoneID
	Horizon, MinGap time.Duration
}

// Offers holds the offers of one node.
type Offers struct {
	cfg       Config
	record    *record.Recorder
	inventory *inventory.Inventory
	of        map[*inventory.Slice]*offer
	renewals  alarm.Heap[*offer]
	views     uint64 // the last view's version, within this boot
	prompt    bool
}

// offer is the last report on one slice.
type offer struct {
	slice *inventory.Slice
	shown *protocol.SliceView // nil: a view is due whatever it says
	slot  int                 // its alarm: when gaps from beyond the horizon come into sight
}

// New returns the offers of a node: none.
func New(cfg Config, r *record.Recorder, i *inventory.Inventory) *Offers {
	return &Offers{cfg: cfg, record: r, inventory: i, of: map[*inventory.Slice]*offer{}}
}

// Again has a slice offered whatever has changed, AgainAll every one.
func (o *Offers) Again(s *inventory.Slice) {
	if x := o.of[s]; x != nil {
		x.shown = nil
	}
	s.Remark()
}

// AgainAll see Again.
func (o *Offers) AgainAll() {
	for _, s := range o.inventory.All() {
		o.Again(s)
	}
}

// ShownUsable reports whether the zone was last told that a slice is usable.
func (o *Offers) ShownUsable(s *inventory.Slice) bool {
	x := o.of[s]
	return x != nil && x.shown != nil && x.shown.Usable
}

// Forget drops the report on a slice that is gone.
func (o *Offers) Forget(s *inventory.Slice) {
	if x := o.of[s]; x != nil {
		o.renewals.Set(&x.slot, x, quantity.Never)
		delete(o.of, s)
	}
}

// Refuse answers an ask, an extension or a zone's reservation, and lets a fresh view follow at once.
func (o *Offers) Refuse(in *protocol.Message, ask uint64, slice job.SliceID, also []job.SliceID, why string, out *protocol.Out) {
	o.prompt = true
	s := o.inventory.Of(slice)
	o.record.Send(out, protocol.Message{
		Kind: protocol.Refused, To: in.From, Job: in.Job, Token: in.Token, Body: &protocol.Refusal{Ask: ask, Slice: slice, Text: why,
			Ends: s != nil && s.Stay() != nil && s.Stay().Leaving != ""},
	})
	for _, id := range append([]job.SliceID{slice}, also...) { // the view of any of them may have been the old one
		if s := o.inventory.Of(id); s != nil {
			o.Again(s)
		}
	}
}

// Prompt says whether a view is to follow at once.
func (o *Offers) Prompt() bool { return o.prompt }

// Due says whether any slice may have to be offered.
func (o *Offers) Due(now quantity.Instant) bool {
	return o.inventory.Changed() > 0 || o.renewals.Next() <= now
}

// Next is when a slice may have to be offered although nothing changes.
func (o *Offers) Next() quantity.Instant { return o.renewals.Next() }

// Offer sends a fresh view of every slice whose gaps have changed, each completed by what the node says of itself.
func (o *Offers) Offer(now quantity.Instant, epoch uint32, complete func(*protocol.SliceView), out *protocol.Out) {
	o.prompt = false
	for x, ok := o.renewals.Due(now); ok; x, ok = o.renewals.Due(now) {
		x.slice.Remark()
	}
	for _, s := range o.inventory.Take() {
		x := o.of[s]
		if x == nil {
			x = &offer{slice: s}
			o.of[s] = x
		}
		v := o.look(now, x)
		if x.shown != nil && unchanged(now, x.shown, v) {
			continue
		}
		o.views++
		v.Version, x.shown = o.views, v
		complete(v)
		o.record.Send(out, protocol.Message{
			Kind: protocol.Offer, To: protocol.Address{Role: protocol.Zone, ID: string(o.cfg.Zone)}, Epoch: epoch, Body: v,
		})
	}
}

// view is a view with room for what most slices have no more of.
type view struct {
	protocol.SliceView
	reserved [1]protocol.Reservation
	gaps     [1]protocol.Gap
}

// look describes a slice as it is now, in memory of its own: a view is never written to once it was sent.
func (o *Offers) look(now quantity.Instant, x *offer) *protocol.SliceView {
	room, s := &view{}, x.slice
	v := &room.SliceView
	v.Slice, v.Node, v.Reserved = s.Desc(), o.record.Node(), s.Reserved(now, room.reserved[:0])
	v.Why, v.Usable = s.Usable()
	if x := s.Stay(); x != nil && x.Leaving == "" {
		v.Resident = &x.Resident
	}
	renew := quantity.Never
	if v.Usable {
		var more bool
		if v.Gaps, more = s.Gaps(now, o.cfg.Horizon, o.cfg.MinGap, room.gaps[:0]); more {
			renew = now.Add(o.cfg.Horizon / 2)
		}
		if len(v.Gaps) == 0 {
			v.Gaps = nil
		}
	}
	o.renewals.Set(&x.slot, x, renew)
	// The promise that everything rests on is checked on what leaves the node, not on how it was computed.
	for _, g := range v.Gaps {
		for _, r := range v.Reserved {
			if sold := r.Kind == protocol.ForLease || r.Kind == protocol.ForHold; sold && g.Start < r.End && r.Start < g.End {
				invariant.Check(false, "node: gap [%d,%d) on %s is offered although lease %v has [%d,%d)", g.Start, g.End, s.ID(), r.Token,
					r.Start, r.End)
			}
		}
	}
	return v
}

// unchanged says whether a view would tell the zone nothing that it can use: the same gaps, apart from the time that has gone by, and as
// many reservations, of which none in a is over. A hold that becomes a lease is such a change.
func unchanged(now quantity.Instant, a, b *protocol.SliceView) bool {
	over := func(r protocol.Reservation) bool { return inventory.Over(now, &r) }
	return a.Usable == b.Usable && a.Why == b.Why && a.Slice.Bears == b.Slice.Bears && protocol.SameResident(a.Resident, b.Resident) &&
		len(a.Reserved) == len(b.Reserved) &&
		!slices.ContainsFunc(a.Reserved, over) &&
		slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
			return g.End == h.End && g.Until == h.Until && (g.Start == h.Start || g.Start <= now && h.Start <= now)
		})
}
