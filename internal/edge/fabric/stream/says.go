package stream

import (
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// allowed reports whether a machine may say a message: as its own node, and only what nodes say to zones and gates (package protocol), of
// its own slices. Actors take the kind of a message for its sender's right to it, so a machine that could submit or cancel a job, or tick,
// would rule the cluster, and one that describes another's slices would be asked in its place. What a node says to an actor for the first
// time needs its line here: else it is dropped and counted as forged.
func allowed(machine job.NodeID, m *protocol.Message) bool {
	if !owns(machine, m.From) || len(m.Filed) > 0 { // what the archive has is handed on by the head's driver alone
		return false
	}
	switch m.To.Role {
	case protocol.Zone:
		return toZone(machine, m)
	case protocol.Person: // an answer to who asked it at the head
		_, ok := m.Body.(*protocol.Receipt)
		return ok && m.Kind == protocol.Reply
	case protocol.Gate:
		stock, ok := m.Body.(*protocol.Stock)
		return ok && m.Kind == protocol.Inventory && !slices.ContainsFunc(stock.Slices, func(s protocol.Slice) bool {
			return !has(machine, s.ID)
		})
	}
	return false
}

// toZone is allowed for what is to a zone.
func toZone(machine job.NodeID, m *protocol.Message) bool {
	place := func(p *protocol.Place) bool { return p == nil || p.Node == machine && has(machine, p.Slice.ID) }
	switch m.Kind {
	case protocol.Granted, protocol.Refused, protocol.Leased, protocol.RedeemRefused, protocol.Running, protocol.Report, protocol.Result,
		protocol.Extended, protocol.Published, protocol.Room, protocol.Parting, protocol.Announce, protocol.Told:
		return true
	case protocol.Offer:
		v, ok := m.Body.(*protocol.SliceView)
		return ok && v.Node == machine && has(machine, v.Slice.ID)
	case protocol.Probed:
		r, ok := m.Body.(*protocol.Response)
		return ok && place(r.Place)
	case protocol.Winning:
		p, ok := m.Body.(*protocol.Prize)
		return ok && place(&p.Place)
	}
	return false
}

// has reports whether a slice is of a machine: its name begins with that.
func has(machine job.NodeID, s job.SliceID) bool {
	of, _, ok := strings.Cut(string(s), "/")
	return ok && of == string(machine)
}

// about reports whether all tokens that a message is about are right.
func about(m *protocol.Message, right func(job.Token) bool) bool {
	switch b := m.Body.(type) {
	case *protocol.Response:
		return right(m.Token) && (b.Place == nil || right(b.Place.Token))
	case *protocol.Prize:
		return right(m.Token) && right(b.Place.Token)
	}
	return right(m.Token)
}
