package node

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes one input at an instant that never goes back, decides, applies its own facts and appends facts and effects to out. An input of
// a kind that is not for a node is ignored, and so is every message about an unknown token: messages may come twice and late.
func (n *Node) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if !n.booted {
		invariant.Check(false, "node %s: Step before Recover", n.cfg.ID)
	}
	n.pressure.Tally(now)
	n.holds.Lapse(now)
	n.reservations.Depart(now)
	if at := n.giving.Due(); at != 0 && at <= now {
		n.giving.Decide(now, giving.Node{
			Confirmed: n.inventory.Confirmed(),
			Sold:      soldBy(n),
			Keep: func(id job.SliceID, kept []protocol.Reservation) {
				if s := n.inventory.Of(id); s != nil || len(kept) > 0 { // it may be named before it is listed
					n.reservations.Keep(now, n.inventory.Record(id), kept, out)
				}
			},
		})
	}
	n.tickets.Decide(now, in.Kind == protocol.Tick, out)
	n.pressure.Overdue(now, out)
	switch in.Kind {
	case protocol.Tick:
		n.wake = 0
	case protocol.Inventory:
		if in.From.Role == protocol.Gate {
			n.tellInventory(out)
		} else {
			n.takeInventory(now, in.Body.(*protocol.Stock), out)
		}
	case protocol.Ask:
		n.ask(now, &in, in.Body.(*protocol.Asking), out)
	case protocol.Probe:
		n.tickets.Lie(now, &in)
	case protocol.LetGo:
		if h, found := n.holds.Of(in.Token); found && h.Job == in.Job {
			n.holds.Drop(in.Token)
		}
	case protocol.Visiting, protocol.Parting, protocol.Answer:
		n.visited(now, &in, out)
	case protocol.Redeem:
		n.redeem(now, &in, in.Body.(*protocol.Work), out)
	case protocol.Extend:
		n.extend(now, &in, in.Body.(*protocol.Extension), out)
	case protocol.Stop:
		n.holds.Drop(in.Token) // the Redeem that is under way is not to be honoured any more
		n.runner.Stop(now, &in, in.Body.(*protocol.Halt), out)
	case protocol.ResultAck:
		n.runner.Acknowledged(now, &in, in.Body.(*protocol.Acknowledgement), out)
	case protocol.Started:
		n.runner.Started(now, &in, in.Body.(*protocol.Beginning).At, out)
	case protocol.Exited:
		n.exited(now, in.Token, in.Body.(*protocol.Conclusion), out)
	case protocol.Dismissed:
		n.residents.Gone(in.Token)
	case protocol.Stuck:
		n.quarantine.Stuck(now, in.Token, in.Body.(*protocol.Reason).Text, out)
	case protocol.Settled:
		n.runner.Settled(in.Token, out)
	case protocol.Report:
		n.report(now, in.Token, in.Body.(*protocol.Observation), out)
	case protocol.Foreign:
		i := in.Body.(*protocol.Intrusion)
		n.reservations.Held(now, n.inventory.Record(i.Slice), i.All(), out)
	case protocol.Wished:
		n.giving.Hear(now, in.Body.(*protocol.Wishes))
	case protocol.Checkup:
		n.quarantine.Check(now, in.Body.(*protocol.Vitals), out)
	case protocol.Unhealthy:
		n.inventory.SetTrouble(in.Body.(*protocol.Condition))
	case protocol.Pressure:
		n.pressure.Report(now, in.Body.(*protocol.Strain), out)
	case protocol.Suspended:
		n.pressure.Stood(now, in.Token, in.Body.(*protocol.Stillness), out)
	case protocol.Reserve, protocol.Unreserve, protocol.Unquarantine:
		n.request(now, &in, out)
	default: // not for a node
	}
	n.after(now, out)
}

// after is the same for every input.
func (n *Node) after(now quantity.Instant, out *protocol.Out) {
	n.pressure.Fill(now)
	n.reservations.Prune(now, out)
	n.residents.Drive(now, out)
	n.runner.Drive(now, out)
	n.memory.Bear(now)
	n.trades = n.trade(now, out)
	n.tickets.Mend(now, out)
	n.offer(now, out)
	n.timer(now, out)
}

// offer sends the zone a fresh view of every slice whose gaps have changed.
func (n *Node) offer(now quantity.Instant, out *protocol.Out) {
	if !n.inventory.Confirmed() {
		return
	}
	if n.refresh != 0 && n.refresh <= now {
		n.announce(now, out)
	}
	n.memory.Bear(now)
	if n.offers.Due(now) && (n.offers.Prompt() || n.tickets.OffersAt(now) <= now) {
		room := n.tickets.Room(now)
		n.offers.Offer(now, n.holds.Epoch(), func(v *protocol.SliceView) { v.Room = room }, out)
	}
}

// timer asks for a Tick at the earliest instant at which something is due without an input. A requested Tick always comes, so a later one
// is not asked for while an earlier one is pending.
func (n *Node) timer(now quantity.Instant, out *protocol.Out) {
	next := min(n.holds.Next(), n.runner.Next(now), n.offers.Next(), n.reservations.Next(), n.pressure.Next(), n.tickets.Next(now),
		n.residents.Next())
	for _, at := range [...]quantity.Instant{n.refresh, n.memory.Next(), n.giving.Due(), n.trades} {
		if at != 0 {
			next = min(next, at)
		}
	}
	if next == quantity.Never || n.wake > now && n.wake <= next {
		return
	}
	n.wake = next
	n.send(out, protocol.Message{Kind: protocol.Wake, To: protocol.Address{Role: protocol.Timer}, Body: out.Moment(next)})
}

// soldBy lists a slice's leases as giving sees them.
func soldBy(n *Node) func(job.SliceID) []giving.Sold {
	return func(id job.SliceID) (list []giving.Sold) {
		if s := n.inventory.Of(id); s != nil {
			for _, l := range n.leases.On(s) {
				t := l.Terms()
				list = append(list, giving.Sold{Token: t.Token, Job: t.Job, Generation: t.Generation, Since: l.Started(), End: t.End,
					Whole: l.Rigid()})
			}
		}
		return list
	}
}

// exited: the process tree of a subjob is confirmed gone.
func (n *Node) exited(now quantity.Instant, t job.Token, c *protocol.Conclusion, out *protocol.Out) {
	switch l := n.leases.Of(t); {
	case l == nil:
		n.quarantine.StrayGone(t, out)
		if c.Resident != nil {
			n.residents.Stray(now, c.Slice, t)
		}
	case l.Issued():
		of, r := l.Terms(), l.Checked(now, c.Result)
		n.memory.Learn(now, of.Slice, l.Started(), of.Peak, r)
		n.pressure.NoteEnd(now, l, r)
		n.runner.End(now, l, n.quarantine.Blame(l, l.Excused(r)), false, out)
		if c.Resident != nil {
			n.residents.Stays(now, of.Slice, t, of.Job, c.Resident)
		}
	}
	n.quarantine.Gone(now, t, out)
}

// report handles a running subjob's progress, and the news that it is gone.
func (n *Node) report(now quantity.Instant, t job.Token, o *protocol.Observation, out *protocol.Out) {
	l := n.runner.Reporting(t)
	if l == nil {
		return
	}
	if o.Vacant && !l.Vacated() {
		n.runner.Vacate(now, l, out)
		n.quarantine.Gone(now, t, out)
	}
	if o.Progress > l.Terms().Range.From {
		n.giving.Report(now, t, o.Progress)
	}
	n.runner.Report(l, o, out)
}
