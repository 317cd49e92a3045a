package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Recover begins a boot: a new epoch, so that no token of an earlier one is honoured, and what is outstanding of ended
// subjobs. Nothing is offered and every ask is refused until the executor has said what it found.
func (n *Node) Recover(now quantity.Instant, out *protocol.Out) {
	invariant.Check(!n.booted, "node %s: Recover twice", n.cfg.ID)
	n.booted = true
	epoch := n.holds.Epoch() + 1
	n.record.Fact(out, protocol.Fact{Kind: protocol.Booted, Epoch: epoch})
	n.quarantine.ForgetStates(n.inventory.All(), "the daemon was started, and looks anew", out)
	n.runner.Recover(now, out)
	n.timer(now, out)
}

// takeInventory confirms the boot: every lease is matched with what the executor found, what nobody knows quarantines its
// slice, and the slices are offered. A later inventory of the same boot only says which slices there are.
func (n *Node) takeInventory(now quantity.Instant, stock *protocol.Stock, out *protocol.Out) {
	changed := n.listSlices(now, stock.Slices, out)
	n.reservations.Leave(now, stock, out)
	if n.inventory.Confirmed() {
		if changed {
			n.tellInventory(out)
		}
		return
	}
	n.inventory.Confirm()
	all := n.leases.Ordered()
	for _, l := range all {
		n.leases.Stir(l)
	}
	found := slices.Clone(stock.Found)
	slices.SortStableFunc(found, func(a, b protocol.Found) int { return a.Token.Compare(b.Token) })
	for _, l := range all {
		if l.Ended() {
			continue
		}
		i, ok := slices.BinarySearchFunc(found, l.Token(), func(f protocol.Found, t job.Token) int { return f.Token.Compare(t) })
		if !ok {
			why := "the daemon stopped before the start"
			if l.Seen() {
				why = "nothing is left of it since the daemon, or its machine, stopped"
			}
			n.runner.End(now, l, l.OwnResult(now, job.NodeFailed, why), true, out)
			continue
		}
		n.match(now, l, &found[i], out)
	}
	for i := range found {
		f := &found[i]
		// What ended in this boot, before the inventory came, was alive when it was found.
		if l := n.leases.Of(f.Token); l == nil || l.EndedBefore() && (f.Alive || f.Stuck) {
			n.quarantine.Stray(now, f, out)
		}
	}
	for _, s := range n.inventory.All() {
		n.quarantine.Booted(now, s, out)
		n.reservations.TruncateForOthers(now, s, out)
		n.quarantine.EndLost(now, s, out)
	}
	n.announce(now, out)
}

// match goes on with a lease of an earlier boot from what the executor found of it.
func (n *Node) match(now quantity.Instant, l *leases.Lease, f *protocol.Found, out *protocol.Out) {
	switch {
	case f.Stuck:
		n.quarantine.FoundStuck(now, l, out)
		n.runner.FoundStuck(now, l, out)
	case f.Alive:
		n.runner.Found(now, l, f, out)
	default:
		n.runner.End(now, l, n.quarantine.Blame(l, l.Checked(now, f.Result)), false, out)
	}
}

// listSlices replaces the list of slices, and reports whether anything has changed. New slices are offered. Slices that are gone are not
// sold any more, and their claims that have not begun are withdrawn; what runs there runs to its end, and no longer.
func (n *Node) listSlices(now quantity.Instant, list []protocol.Slice, out *protocol.Out) (changed bool) {
	for _, s := range n.inventory.Forget(func(s *inventory.Slice) bool { return n.reservations.Needs(s) || n.offers.ShownUsable(s) }) {
		n.offers.Forget(s)
		n.reservations.Forget(s)
		n.quarantine.Forget(s)
	}
	other, missing := n.inventory.List(n.cfg.places(list))
	for _, s := range other {
		n.offers.Again(s)
	}
	changed = len(other) > 0
	for _, s := range missing {
		const why = "it is not there any more"
		n.quarantine.ForgetStates([]*inventory.Slice{s}, why, out)
		if n.inventory.Lose(s) {
			changed = true
			n.runner.Withdraw(now, s, "withdrawn: "+string(s.ID())+" is not there any more", out)
		}
	}
	return changed
}

// tellInventory tells the gates what there is, once that is known.
func (n *Node) tellInventory(out *protocol.Out) {
	if n.inventory.Confirmed() {
		for _, gate := range n.cfg.Gates.All() {
			n.send(out, protocol.Message{Kind: protocol.Inventory, To: gate, Body: &protocol.Stock{Slices: n.inventory.Listed()}})
		}
	}
}

// announce tells the gates what there is and lets every slice be offered.
func (n *Node) announce(now quantity.Instant, out *protocol.Out) {
	n.tellInventory(out)
	n.offers.AgainAll()
	if n.cfg.Refresh > 0 {
		n.refresh = now.Add(n.cfg.Refresh)
	}
}
