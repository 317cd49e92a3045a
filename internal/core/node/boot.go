package node

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Recover begins a boot: a new epoch, so that no token of an earlier one is honoured, and what is outstanding of ended
// subjobs. Nothing is offered and every ask is refused until the executor has said what it found.
func (n *Node) Recover(now quantity.Instant, out *protocol.Out) {
	invariant.Check(!n.booted, "node %s: Recover twice", n.cfg.ID)
	n.booted = true
	epoch := n.epoch + 1
	n.fact(out, protocol.Fact{Kind: protocol.Booted, Epoch: epoch})
	n.forgetStates(out)
	for _, l := range n.byToken() {
		if l.phase == leaseSold {
			n.turn(l, issued) // whether it was, the executor will say
		}
		n.outstanding(now, l, out)
	}
	n.timer(now, out)
}

// takeInventory confirms the boot: every lease is matched with what the executor found, what nobody knows quarantines its
// slice, and the slices are offered. A later inventory of the same boot only says which slices there are.
func (n *Node) takeInventory(now quantity.Instant, stock *protocol.Stock, out *protocol.Out) {
	changed := n.restock(now, stock.Slices, out)
	n.probes.dimAll()
	if n.confirmed {
		if changed {
			n.tellInventory(out)
		}
		return
	}
	n.confirmed = true
	leases := n.byToken()
	for _, l := range leases {
		n.stir(l)
	}
	found := slices.Clone(stock.Found)
	slices.SortStableFunc(found, func(a, b protocol.Found) int { return a.Token.Compare(b.Token) })
	for _, l := range leases {
		if l.ended() {
			continue
		}
		i, ok := slices.BinarySearchFunc(found, l.token, func(f protocol.Found, t job.Token) int { return f.Token.Compare(t) })
		if !ok {
			why := "the daemon stopped before the start"
			if l.seen() {
				why = "nothing is left of it since the daemon, or its machine, stopped"
			}
			n.end(now, l, ownResult(now, l, job.NodeFailed, why), true, out)
			continue
		}
		n.match(now, l, &found[i], out)
	}
	for i := range found {
		l := n.lease(found[i].Token)
		// What ended in this boot, before the inventory came, was alive when it was found.
		if l == nil || l.ended() && !l.fresh && (found[i].Alive || found[i].Stuck) {
			n.stranger(now, &found[i], out)
		}
	}
	for _, s := range n.slices {
		if !n.remain(s.holder) { // the last of them has ended while nobody looked
			n.lift(now, s, out)
		}
		n.giveWay(now, s, out)
		if s.fault != nil && s.fault.Ends {
			n.endLost(now, s, out)
		}
	}
	n.announce(now, out)
}

// placed says of slices where the node stands, as it is configured to know.
func (n *Node) placed(list []protocol.Slice) []protocol.Slice {
	if n.cfg.Rack == "" && n.cfg.Block == "" {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Rack, list[i].Block = n.cfg.Rack, n.cfg.Block
	}
	return list
}

// match goes on with a lease of an earlier boot from what the executor found of it.
func (n *Node) match(now quantity.Instant, l *lease, f *protocol.Found, out *protocol.Out) {
	switch {
	case f.Stuck:
		n.strand(now, l, remaining(l)+" from before the restart", out)
		n.send(out, protocol.Message{Kind: protocol.Stop, To: n.executor(), Token: l.token, Job: l.job, Body: &protocol.Halt{Text: "its processes can't be ended"}})
		n.outstanding(now, l, out)
	case f.Alive:
		n.markStarted(now, l, f.Started, out)
		n.sendDeadline(l, out)
		if f.Still && l.phase == leaseRunning { // nobody knows any more why, nor until when
			n.turn(l, thaws)
		}
		n.outstanding(now, l, out)
	default:
		n.end(now, l, n.blamed(l, checked(now, l, f.Result)), false, out)
	}
}

// stranger deals with a run directory that no lease stands for. What lives there quarantines its slice; what is dead is
// put away.
func (n *Node) stranger(now quantity.Instant, f *protocol.Found, out *protocol.Out) {
	if !f.Alive && !f.Stuck {
		n.discard(f.Token, f.Job, out)
		return
	}
	n.strays = append(n.strays, stray{f.Token, f.Job, f.Slice})
	if f.Slice != "" {
		n.quarantine(now, n.record(f.Slice), f.Token, strayed(f.Token), out)
	}
	n.send(out, protocol.Message{Kind: protocol.Stop, To: n.executor(), Token: f.Token, Job: f.Job, Body: &protocol.Halt{Text: "no lease stands for it"}})
}

// tellInventory tells the gate what there is, once that is known.
func (n *Node) tellInventory(out *protocol.Out) {
	if n.confirmed {
		for _, gate := range n.cfg.Gates.All() {
			n.send(out, protocol.Message{Kind: protocol.Inventory, To: gate, Body: &protocol.Stock{Slices: n.inventory}})
		}
	}
}

// announce tells the gate what there is and lets every slice be offered.
func (n *Node) announce(now quantity.Instant, out *protocol.Out) {
	n.tellInventory(out)
	n.showAll()
	if n.cfg.Refresh > 0 {
		n.refresh = now.Add(n.cfg.Refresh)
	}
}

// ail: the node can start nothing, or can again. What is running goes on; what was sold and has not begun waits for the end
// of it, as long as its window lasts. It is not a fact: a restart finds it again.
func (n *Node) ail(a *protocol.Ailment) {
	text := ""
	if a.Ails {
		text = cmp.Or(a.Text, "it can start nothing")
	}
	if n.ailing == text {
		return
	}
	n.ailing = text
	for _, s := range n.slices {
		n.show(s)
	}
}

// Capture implements capture.Source. A node says all of it at once: it is no more than the slices of one machine and what
// runs there. Vacated leases come first: the time they had may have been sold again.
func (n *Node) Capture() capture.Run {
	small := []protocol.Fact{{Kind: protocol.Booted, Epoch: n.epoch, Reservation: &protocol.Reservation{ID: n.lastID}}}
	for _, s := range n.slices {
		for _, r := range s.time.Closed() {
			if !soft(r.ID) {
				small = append(small, protocol.Fact{Kind: protocol.ReservationMade, Reservation: &r})
			}
		}
		if s.quarantined {
			small = append(small, protocol.Fact{Kind: protocol.Quarantined, Slice: s.id, Token: s.holder, Text: s.quarantine, At: s.barredAt})
		}
		if s.fault != nil {
			small = append(small, protocol.Fact{Kind: protocol.SliceFailed, Slice: s.id, Fault: s.fault})
		}
	}
	for _, l := range slices.SortedStableFunc(slices.Values(n.byToken()), func(a, b *lease) int {
		return -cmp.Compare(bit(a.vacated()), bit(b.vacated()))
	}) {
		small = n.leaseFacts(l, small)
	}
	return n.parts.Begin(n.self, small)
}

func bit(v bool) int {
	if v {
		return 1
	}
	return 0
}

func (n *Node) leaseFacts(l *lease, out []protocol.Fact) []protocol.Fact {
	out = append(out, protocol.Fact{
		Kind: protocol.LeaseMade, Token: l.token, Job: l.job, Epoch: l.epoch, Generation: l.generation, Zone: l.zone, Slice: l.slice, Also: l.also,
		Range: l.rng, Start: l.start, End: l.end, Demand: l.demand, Peak: l.peak, Plan: l.plan, Rank: l.rank, Text: l.cut,
	})
	if l.seen() {
		out = append(out, protocol.Fact{Kind: protocol.SubjobStarted, Token: l.token, Job: l.job, At: l.at})
	}
	if l.stuck() {
		n.each(l.slice, l.also, func(s *slice) {
			out = append(out, protocol.Fact{Kind: protocol.Quarantined, Slice: s.id, Token: l.token, Text: s.quarantine, At: s.barredAt})
		})
	}
	if l.phase == leaseStoring {
		out = append(out, protocol.Fact{Kind: protocol.SubjobVacated, Token: l.token, Job: l.job})
	}
	if l.ended() {
		out = append(out, protocol.Fact{Kind: protocol.SubjobEnded, Token: l.token, Job: l.job, Result: l.result, Flag: l.bare})
	}
	if l.settled() {
		out = append(out, protocol.Fact{Kind: protocol.ResultSettled, Token: l.token, Job: l.job, Range: l.settling})
	}
	return out
}
