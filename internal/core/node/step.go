package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Step takes one input at an instant that never goes back, decides, applies its own facts and appends facts and effects
// to out. An input of a kind that is not for a node is ignored, and so is everything said about a token nobody knows:
// messages may come twice and late.
func (n *Node) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if !n.booted {
		invariant.Check(false, "node %s: Step before Recover", n.cfg.ID)
	}
	n.memory.tally(now)
	n.lapse(now)
	n.depart(now)
	if at := n.wishes.Due(); at != 0 && at <= now {
		n.wishes.Decide(now, giving.Node{
			Confirmed: n.confirmed,
			Sold: func(id job.SliceID) []giving.Sold {
				if s := n.slice(id); s != nil {
					return s.sold(n.leasesOn(s))
				}
				return nil
			},
			Keep: func(id job.SliceID, kept []protocol.Reservation) {
				if s := n.slice(id); s != nil || len(kept) > 0 { // it may be told of before it is listed
					s = n.record(id)
					n.foreign(now, s, s.others, kept, out)
				}
			},
		})
	}
	n.decide(now, in.Kind == protocol.Tick, out)
	n.overdue(now, out)
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
		n.lie(now, &in)
	case protocol.LetGo:
		n.letGo(&in)
	case protocol.Visiting, protocol.Parting, protocol.Answer:
		n.visited(now, &in, out)
	case protocol.Redeem:
		n.redeem(now, &in, in.Body.(*protocol.Work), out)
	case protocol.Extend:
		n.extend(now, &in, in.Body.(*protocol.Extension), out)
	case protocol.Stop:
		n.stop(now, &in, in.Body.(*protocol.Halt), out)
	case protocol.ResultAck:
		n.acknowledged(now, &in, in.Body.(*protocol.Acknowledgement), out)
	case protocol.Started:
		n.startedNow(now, &in, in.Body.(*protocol.Beginning), out)
	case protocol.Exited:
		n.exited(now, &in, in.Body.(*protocol.Conclusion), out)
	case protocol.Stuck:
		n.stuck(now, &in, in.Body.(*protocol.Reason), out)
	case protocol.Settled:
		n.settled(&in, out)
	case protocol.Report:
		n.report(now, &in, in.Body.(*protocol.Observation), out)
	case protocol.Foreign:
		i := in.Body.(*protocol.Intrusion)
		s := n.record(i.Slice)
		n.foreign(now, s, i.All(), s.kept, out)
	case protocol.Wished:
		n.wishes.Hear(now, in.Body.(*protocol.Wishes))
	case protocol.Checkup:
		n.checkup(now, in.Body.(*protocol.Vitals), out)
	case protocol.Ailing:
		n.ail(in.Body.(*protocol.Ailment))
	case protocol.Pressure:
		n.press(now, in.Body.(*protocol.Strain), out)
	case protocol.Suspended:
		n.stood(now, &in, in.Body.(*protocol.Stillness), out)
	case protocol.Reserve, protocol.Unreserve, protocol.Release:
		n.request(now, &in, out)
	default: // not for a node
	}
	n.after(now, out)
}

// after is the same for every input.
func (n *Node) after(now quantity.Instant, out *protocol.Out) {
	n.fill(now)
	if n.pass != nil {
		n.pass(now, out)
		return
	}
	n.prune(now, out)
	n.drive(now, out)
	n.bear(now)
	n.trades = n.trade(now, out)
	n.mend(now, out)
	n.offer(now, out)
	n.timer(now, out)
}

// fact decides a fact and applies it at once.
func (n *Node) fact(out *protocol.Out, f protocol.Fact) {
	f.Actor = n.self
	out.Facts = append(out.Facts, f)
	n.apply(&f)
}

// send appends an effect.
func (n *Node) send(out *protocol.Out, m protocol.Message) {
	m.From = n.self
	out.Effects = append(out.Effects, m)
}

func (n *Node) executor() protocol.Address {
	return protocol.Address{Role: protocol.Executor, ID: string(n.cfg.ID)}
}

// home is the zone that a lease belongs to.
func (l *lease) home() protocol.Address {
	return protocol.Address{Role: protocol.Zone, ID: string(l.zone)}
}

// prune records that reservations are over. A fact, not a rule of time in Apply, because folding facts must give the same
// state whenever it is done; nobody waits for it, so it needs no timer of its own.
func (n *Node) prune(now quantity.Instant, out *protocol.Out) {
	for _, s := range n.expired(now) {
		n.ids = s.time.Past(now, n.ids[:0])
		for _, id := range n.ids {
			n.fact(out, protocol.Fact{Kind: protocol.ReservationGone, Reservation: &protocol.Reservation{ID: id}})
		}
	}
}

// drive starts what is due and sends again what nobody has acknowledged.
func (n *Node) drive(now quantity.Instant, out *protocol.Out) {
	due := n.due(now)
	for again := true; again; { // one that ends without having started may have been in the way of another
		again = false
		for _, l := range n.pending {
			if l.phase == leaseSold && n.begin(now, l, out) {
				again = true
			}
		}
	}
	for _, l := range due {
		if l.retry != 0 && l.retry <= now || l.retry == 0 && n.late(now, l) {
			n.outstanding(now, l, out)
		}
	}
}

// late says whether a subjob that should be gone was not confirmed to be: its home is told, again and again, so that it sells the same work
// to nobody else meanwhile.
func (n *Node) late(now quantity.Instant, l *lease) bool {
	return n.confirmed && l.issued() && !l.vacated() && (l.stuck() || now >= l.end.Add(n.cfg.ResultRetry))
}

// outstanding sends what the lease's state still asks for, and says when it is to be sent again.
func (n *Node) outstanding(now quantity.Instant, l *lease, out *protocol.Out) {
	n.stir(l)
	l.retry = now.Add(n.cfg.ResultRetry)
	late := n.late(now, l)
	if late {
		n.send(out, protocol.Message{Kind: protocol.Report, To: l.home(), Token: l.token, Job: l.job,
			Body: &protocol.Observation{Slice: l.slice, Progress: l.rng.From, At: now, Remains: true}})
	}
	switch {
	case l.phase == leaseEnded:
		n.sendResult(l, out)
	case l.phase == leaseSettled:
		n.send(out, protocol.Message{
			Kind: protocol.Settle, To: n.executor(), Token: l.token, Job: l.job, Generation: l.generation, Body: out.Settlement(protocol.Settlement{Range: l.settling, Committed: !l.settling.Empty()}),
		})
	case !n.confirmed || l.phase == leaseStoring:
		l.retry = 0
	case l.stuck():
	case l.phase == leaseStopping:
		halt := &protocol.Halt{Text: l.why, Short: l.stand.asked || l.stand.reclaimed, Now: l.hurried || l.stand.reclaimed || l.lost != ""}
		n.send(out, protocol.Message{Kind: protocol.Stop, To: n.executor(), Token: l.token, Job: l.job, Body: halt})
	case l.runs() && now >= l.end.Add(n.cfg.Overdue):
		n.send(out, protocol.Message{
			Kind: protocol.Stop, To: n.executor(), Token: l.token, Job: l.job, Body: &protocol.Halt{Text: "it is still there after the end of its lease"},
		})
	case l.phase == leaseSuspending:
		n.send(out, protocol.Message{Kind: protocol.Suspend, To: n.executor(), Token: l.token, Job: l.job, Body: &protocol.Reason{Text: shortOfMemory}})
	case l.phase == leaseResuming:
		n.send(out, protocol.Message{Kind: protocol.Resume, To: n.executor(), Token: l.token, Job: l.job})
	case l.issued() && !l.seen() && l.spec != nil:
		n.send(out, protocol.Message{
			Kind: protocol.Start, To: n.executor(), Token: l.token, Job: l.job, Generation: l.generation, Body: out.Work(protocol.Work{Slice: l.slice, Also: l.also, Range: l.rng,
				Start: l.start, End: l.end, Demand: l.demand, Peak: l.peak, Plan: l.plan, Rank: l.rank, Spec: l.spec}),
		})
	case !late:
		l.retry = 0
	}
}

func (n *Node) sendResult(l *lease, out *protocol.Out) {
	n.send(out, protocol.Message{
		Kind: protocol.Result, To: l.home(), Token: l.token, Job: l.job, Epoch: l.epoch, Generation: l.generation, Body: out.Conclusion(protocol.Conclusion{Slice: l.slice, Range: l.rng,
			Result: l.result, Start: l.start, End: l.end}),
	})
}

// timer asks for a Tick at the earliest instant at which something is to be done without an input. A Tick that is asked
// for stands until it comes, so a later one is not asked for while an earlier one stands.
func (n *Node) timer(now quantity.Instant, out *protocol.Out) {
	next := quantity.Never
	due := func(at quantity.Instant) {
		if at != 0 {
			next = min(next, at)
		}
	}
	due(n.lapses())
	n.rearm(now)
	due(n.alarms.Next())
	due(n.renewals.Next())
	due(n.departures.Next())
	due(n.refresh)
	due(n.memory.due)
	due(n.memory.old)
	due(n.memory.until)
	due(n.host.passes)
	due(n.wishes.Due())
	if n.market != nil {
		due(n.trades)
	}
	if p := n.probes; p != nil {
		due(p.next)
		if len(p.lying) > 0 {
			due(now)
		}
	}
	if next == quantity.Never || n.wake > now && n.wake <= next {
		return
	}
	n.wake = next
	n.send(out, protocol.Message{Kind: protocol.Wake, To: protocol.Address{Role: protocol.Timer}, Body: out.Moment(next)})
}

// sold are the leases on a slice that are not over, for who gives back.
func (*slice) sold(leases []*lease) (list []giving.Sold) {
	for _, l := range leases {
		if l.ended() {
			continue
		}
		x := giving.Sold{Token: l.token, End: l.end, Whole: l.spec != nil && l.spec.Kind == job.Rigid}
		if l.seen() {
			x.Since = l.at
		}
		list = append(list, x)
	}
	return list
}

// touches says whether a lease or grant on these slices is on s.
func touches(s job.SliceID, first job.SliceID, also []job.SliceID) bool {
	return s == first || slices.Contains(also, s)
}
