package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// restock takes in which slices there are, in place of what was listed before, and says whether anything has changed. It is no fact: a
// restart lists them again. What is new is offered. Of what is gone nothing is sold any more, and what was sold there and has not begun is
// withdrawn; what runs there goes on to its end, and no longer.
func (n *Node) restock(now quantity.Instant, stock []protocol.Slice, out *protocol.Out) (changed bool) {
	n.inventory = n.placed(stock)
	n.stocks++
	n.dropForgotten()
	for i := range n.inventory {
		s := n.record(n.inventory[i].ID)
		s.stock = n.stocks
		is := n.inventory[i]
		is.Host, is.Bears = s.desc.Host, s.desc.Bears
		if s.known && s.desc == is {
			continue
		}
		s.known, s.desc, changed = true, is, true
		if n.market != nil {
			n.market.Place(&s.desc)
		}
		n.showAgain(s)
	}
	for _, s := range n.slices {
		if s.stock != n.stocks && s.fault != nil && s.fault.Cause != health.ByXid {
			n.mendFault(s, "it is not there any more", out)
		}
		if s.known && s.stock != n.stocks {
			s.known, changed = false, true
			n.show(s)
			n.withdraw(now, s, "withdrawn: "+string(s.id)+" is not there any more", out)
		}
	}
	return changed
}

// dropForgotten lets go of slices that are gone, and of which nothing is left: machines of a cluster have ever new names.
func (n *Node) dropForgotten() {
	all := len(n.slices)
	n.slices = slices.DeleteFunc(n.slices, func(s *slice) bool {
		if s.known || s.left() || len(s.others)+len(s.kept) > 0 || s.shown != nil && s.shown.Usable || bool(s.dirty) {
			return false
		}
		delete(n.byID, s.id)
		n.renewals.Set(&s.renewing, s, quantity.Never)
		n.passings.Set(&s.passing, s, quantity.Never)
		n.departures.Set(&s.departing, s, quantity.Never)
		return true
	})
	if len(n.slices) != all {
		n.found = nil
		n.probes.dimAll()
	}
}

// withdraw ends what was sold of a slice and has not begun.
func (n *Node) withdraw(now quantity.Instant, s *slice, why string, out *protocol.Out) {
	for _, l := range n.leasesOn(s) {
		if !l.issued() {
			n.end(now, l, ownResult(now, l, job.Stopped, why), true, out)
		}
	}
}

// left says whether a slice that is not there any more still has something that people would look for.
func (s *slice) left() bool {
	for _, r := range s.time.Closed() {
		if !soft(r.ID) {
			return true
		}
	}
	return s.quarantined || s.fault != nil || len(s.time.Sold()) > 0
}
