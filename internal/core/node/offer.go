package node

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// offer sends the zone a fresh view of every slice whose gaps have changed.
func (n *Node) offer(now quantity.Instant, out *protocol.Out) {
	if !n.confirmed {
		return
	}
	if n.refresh != 0 && n.refresh <= now {
		n.announce(now, out)
	}
	n.bear(now)
	if n.unshown.Len() == 0 && n.renewals.Next() > now {
		return
	}
	if n.offersAt(now) > now {
		return
	}
	n.prompt = false
	var room *flow.Summary
	if n.probes != nil {
		said := n.says(n.fragments(now))
		room, n.probes.next = &said, 0
	}
	for _, s := range n.unseen(now) {
		v := n.look(now, s)
		if s.shown != nil && unchanged(now, s.shown, v) {
			continue
		}
		n.views++
		v.Version, v.Room, s.shown = n.views, room, v
		n.send(out, protocol.Message{
			Kind: protocol.Offer, To: protocol.Address{Role: protocol.Zone, ID: string(n.cfg.Zone)}, Epoch: n.epoch, Body: v,
		})
	}
}

// seen is a view with room for what most slices have no more of.
type seen struct {
	protocol.SliceView
	reserved [1]protocol.Reservation
	gaps     [1]protocol.Gap
}

// look describes a slice as it is now, in memory of its own: a view is never written to once it was sent.
func (n *Node) look(now quantity.Instant, s *slice) *protocol.SliceView {
	room := &seen{}
	v := &room.SliceView
	v.Slice, v.Node, v.Reserved = s.desc, n.cfg.ID, s.reserved(now, room.reserved[:0])
	v.Why, v.Usable = n.usable(s)
	s.renew = 0
	if v.Usable {
		var more bool
		if v.Gaps, more = s.time.Gaps(now, n.cfg.Horizon, n.cfg.MinGap, room.gaps[:0]); more {
			s.renew = now.Add(n.cfg.Horizon / 2)
		}
		if len(v.Gaps) == 0 {
			v.Gaps = nil
		}
	}
	n.renewals.Set(&s.renewing, s, orNever(s.renew))
	// The promise that everything rests on is checked on what leaves the node, not on how it was computed.
	for _, g := range v.Gaps {
		for _, r := range v.Reserved {
			if sold := r.Kind == protocol.ForLease || r.Kind == protocol.ForHold; sold && g.Start < r.End && r.Start < g.End {
				invariant.Check(false, "node: gap [%d,%d) on %s is offered although lease %v has [%d,%d)", g.Start, g.End, s.id, r.Token,
					r.Start, r.End)
			}
		}
	}
	return v
}

// reserved appends what stands on a slice and is not over, in order of start. A lease that is past its end stands until it
// is confirmed gone.
func (s *slice) reserved(now quantity.Instant, all []protocol.Reservation) []protocol.Reservation {
	all = append(all, s.time.Sold()...)
	for _, r := range s.time.Closed() {
		if r.Every != 0 || r.End > now {
			all = append(all, r)
		}
	}
	if len(all) == 0 && s.time.Sold() == nil {
		return nil
	}
	if len(all) > 1 {
		slices.SortFunc(all, func(a, b protocol.Reservation) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
		})
	}
	return all
}

// unchanged says whether a view would tell the zone nothing that it can use: the same gaps, apart from the time that has
// gone by, and as many reservations. A hold that becomes a lease is such a change.
func unchanged(now quantity.Instant, a, b *protocol.SliceView) bool {
	return a.Usable == b.Usable && a.Why == b.Why && a.Slice.Bears == b.Slice.Bears && len(a.Reserved) == len(b.Reserved) &&
		slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
			return g.End == h.End && g.Until == h.Until && (g.Start == h.Start || g.Start <= now && h.Start <= now)
		})
}
