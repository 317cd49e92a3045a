package node

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// ask holds time for a zone, or refuses with a reason and a fresh view. The same ask answers the same grant while it
// stands.
func (n *Node) ask(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if g := n.asked[question{in.From, in.Ask}]; g != nil {
		n.sendGranted(g, out)
		return
	}
	// The place that the zone had reserved for the job is no obstacle to the job.
	own := job.ID("")
	if in.Reservation != nil {
		if r, s := n.reservation(in.Reservation.ID); s != nil && r.Kind == protocol.ForRigid && r.Job == in.Job {
			own = in.Job
		}
	}
	if why := n.refusal(now, in, own); why != "" {
		n.refuse(in, why, out)
		return
	}
	n.seq++
	g := &grant{
		token: job.Token{Epoch: n.epoch, Seq: uint64(n.cfg.Number)<<tokenShift | n.seq}, from: in.From, ask: in.Ask, job: in.Job, slice: in.Slice, also: in.Also,
		start: in.Start, end: in.End, expiry: now.Add(n.cfg.GrantTTL), takes: own != "",
	}
	n.grants, n.asked[question{g.from, g.ask}] = append(n.grants, g), g
	n.each(g.slice, g.also, func(s *slice) {
		inTheWay, free := s.time.Insert(protocol.Reservation{
			ID: reservationID(g.token), Kind: protocol.ForHold, Slice: s.id, Start: g.start, End: g.end, Job: g.job, Token: g.token,
		})
		if !free {
			invariant.Check(false, "node: hold %v overlaps %v %d on %s, which was free", g.token, inTheWay.Kind, inTheWay.ID, s.id)
		}
		n.show(s)
	})
	n.sendGranted(g, out)
}

// refusal says why the time asked for can't be held, empty if it can.
func (n *Node) refusal(now quantity.Instant, in *protocol.Message, own job.ID) string {
	switch {
	case !job.ValidName(in.Job):
		return unnamed(in.Job)
	case in.Start >= in.End:
		return "the ask ends before it starts"
	case in.End <= now:
		return "the time asked for is over"
	case n.outlived(in):
		return "it is for an earlier life of the job"
	case in.Start > now.Add(n.cfg.Horizon):
		return fmt.Sprintf("it starts more than %v ahead, which is as far as this node sells", n.cfg.Horizon)
	}
	all := append([]job.SliceID{in.Slice}, in.Also...)
	for i, id := range all {
		if slices.Contains(all[:i], id) {
			return fmt.Sprintf("%s is asked for twice", id)
		}
	}
	for _, id := range all {
		s := n.slice(id)
		if s == nil {
			return fmt.Sprintf("%s is not a slice of this node", id)
		}
		if why, ok := n.usable(s); !ok {
			return fmt.Sprintf("%s: %s", id, why)
		}
		if !in.Demand.Fits(s.desc.Capacity) {
			return fmt.Sprintf("%s: %v is more than its capacity %v", id, in.Demand, s.desc.Capacity)
		}
		if s.time.Full() {
			return fmt.Sprintf("%s: %d reservations is as many as a slice may have", id, timeline.Max)
		}
		if r, ok := s.time.Free(now, max(now, in.Start), in.End, own); !ok {
			return fmt.Sprintf("%s: %s", id, describe(&r))
		}
	}
	return ""
}

// unnamed is why nothing is given to a job whose name is none: what it ran would have no place of its own.
func unnamed(id job.ID) string {
	return fmt.Sprintf("it names no job: %.80q is no name; want %s", id, job.NameRule)
}

// outlived says whether a lease stands here for a later life of the job than the one that a message is about.
func (n *Node) outlived(in *protocol.Message) bool {
	return slices.ContainsFunc(n.ofJob[in.Job], func(l *lease) bool { return l.generation > in.Generation.Number() })
}

// describe says in words what a reservation does to its time.
func describe(r *protocol.Reservation) string {
	until := "until further notice"
	if r.End != quantity.Never {
		until = "until " + clock(r.End)
	}
	who := ""
	switch {
	case r.Job != "":
		who = " for job " + string(r.Job)
	case r.Source != "":
		who = " for " + r.Source
	}
	return fmt.Sprintf("taken (%v)%s from %s %s", r.Kind, who, clock(r.Start), until)
}

// clock is an instant for people, in UTC.
func clock(t quantity.Instant) string {
	if t == quantity.Never {
		return "no end"
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z07:00")
}

// refuse answers an ask, an extension or a zone's reservation, and lets a fresh view follow.
func (n *Node) refuse(in *protocol.Message, why string, out *protocol.Out) {
	n.send(out, protocol.Message{
		Kind: protocol.Refused, To: in.From, Ask: in.Ask, Job: in.Job, Slice: in.Slice, Token: in.Token, Text: why,
	})
	for _, id := range append([]job.SliceID{in.Slice}, in.Also...) { // the view of any of them may have been the old one
		if s := n.slice(id); s != nil {
			n.showAgain(s)
		}
	}
}

func (n *Node) sendGranted(g *grant, out *protocol.Out) {
	n.send(out, protocol.Message{
		Kind: protocol.Granted, To: g.from, Ask: g.ask, Job: g.job, Slice: g.slice, Also: g.also, Token: g.token,
		Start: g.start, End: g.end, Expiry: g.expiry,
	})
}

// lapse drops the holds that nobody has redeemed in time.
func (n *Node) lapse(now quantity.Instant) {
	for len(n.grants) > 0 && n.grants[0].expiry <= now {
		n.dropGrant(n.grants[0].token)
	}
}

// dropGrant gives a hold's time back, if there is one of this token.
func (n *Node) dropGrant(t job.Token) {
	i, found := n.findGrant(t)
	if !found {
		return
	}
	g := n.grants[i]
	if i == 0 {
		n.grants[0], n.grants = nil, n.grants[1:] // most lapse or are redeemed in their order
	} else {
		n.grants = slices.Delete(n.grants, i, i+1)
	}
	delete(n.asked, question{g.from, g.ask})
	n.each(g.slice, g.also, func(s *slice) {
		s.time.Remove(reservationID(t))
		n.show(s)
	})
}

func (n *Node) findGrant(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(n.grants, t, func(g *grant, t job.Token) int { return g.token.Compare(t) })
}

// redeem turns a hold into a lease, once. What was redeemed already is confirmed again, with the result if it has ended.
func (n *Node) redeem(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if l := n.lease(in.Token); l != nil && l.job == in.Job {
		if l.ended() {
			n.sendResult(l, out)
		} else {
			n.sendLeased(l, out)
			if l.started { // the zone asks because it has heard nothing, or has forgotten it in a crash
				n.send(out, protocol.Message{Kind: protocol.Running, To: l.home(), Token: l.token, Job: l.job, Slice: l.slice, At: l.at})
			}
		}
		return
	}
	i, found := n.findGrant(in.Token)
	why := "the token lapsed, or is of an earlier boot of this node"
	if found && n.grants[i].job == in.Job {
		why = n.unredeemable(now, n.grants[i], in)
	}
	if why != "" {
		n.send(out, protocol.Message{Kind: protocol.RedeemRefused, To: in.From, Token: in.Token, Job: in.Job, Slice: in.Slice, Text: why})
		return
	}
	g := n.grants[i]
	zone := n.cfg.Zone
	if in.From.Role == protocol.Zone && in.From.ID != "" {
		zone = job.ZoneID(in.From.ID)
	}
	n.fact(out, protocol.Fact{
		Kind: protocol.LeaseMade, Token: g.token, Job: g.job, Epoch: in.Epoch, Generation: in.Generation.Number(), Zone: zone, Slice: g.slice, Also: g.also,
		Range: in.Range, Start: in.Start, End: in.End, Demand: in.Demand, Plan: in.Plan,
	})
	if g.takes {
		n.takeOver(g, out)
	}
	l := n.lease(g.token)
	l.spec = in.Spec
	n.sendLeased(l, out)
}

// unredeemable says why a standing hold can't become this lease, empty if it can.
func (n *Node) unredeemable(now quantity.Instant, g *grant, in *protocol.Message) string {
	switch {
	case in.Slice != g.slice:
		return fmt.Sprintf("the token is for %s", g.slice)
	case in.Start < g.start || in.End > g.end || in.Start >= in.End:
		return fmt.Sprintf("the token is for %s to %s", clock(g.start), clock(g.end))
	case in.End <= now:
		return "its time is over"
	case in.Range.Empty():
		return "there is no work in it"
	case in.Spec == nil:
		return "it does not say what to run"
	case n.outlived(in):
		return "it is for an earlier life of the job"
	}
	why := ""
	n.each(g.slice, g.also, func(s *slice) {
		if w, ok := n.usable(s); !ok {
			why = fmt.Sprintf("%s: %s", s.id, w)
		} else if !in.Demand.Fits(s.desc.Capacity) {
			why = fmt.Sprintf("%s: %v is more than its capacity %v", s.id, in.Demand, s.desc.Capacity)
		}
	})
	return why
}

// takeOver withdraws the places that were kept for the job on the time it now has.
func (n *Node) takeOver(g *grant, out *protocol.Out) {
	n.each(g.slice, g.also, func(s *slice) {
		n.withdrawOwn(s, g.job, g.start, g.end, out)
	})
}

// withdrawOwn withdraws a rigid job's places that share time with [from, to).
func (n *Node) withdrawOwn(s *slice, own job.ID, from, to quantity.Instant, out *protocol.Out) {
	for _, r := range slices.Clone(s.time.Closed()) {
		if _, hit := timeline.Overlap(&r, from, to); hit && r.Kind == protocol.ForRigid && r.Job == own {
			n.fact(out, protocol.Fact{Kind: protocol.ReservationGone, Reservation: &protocol.Reservation{ID: r.ID}})
		}
	}
}

func (n *Node) sendLeased(l *lease, out *protocol.Out) {
	n.send(out, protocol.Message{Kind: protocol.Leased, To: l.home(), Token: l.token, Job: l.job, Slice: l.slice})
}
