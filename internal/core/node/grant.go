package node

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// ask holds time for a zone, or refuses with a reason and a fresh view. The same ask answers the same grant while it
// stands.
func (n *Node) ask(now quantity.Instant, in *protocol.Message, a *protocol.Asking, out *protocol.Out) {
	if g := n.asked[question{in.From, a.Ask}]; g != nil {
		n.sendGranted(g, out)
		return
	}
	// The place that the zone had reserved for the job is no obstacle to the job.
	own := job.ID("")
	if r := a.Reservation; r != nil && r.ID == protocol.OwnPlace {
		own = in.Job
	} else if r != nil {
		if r, s := n.reservation(a.Reservation.ID); s != nil && r.Kind == protocol.ForRigid && r.Job == in.Job {
			own = in.Job
		}
	}
	if why := n.refusal(now, in, a, own); why != "" {
		n.refuse(in, a.Ask, a.Slice, a.Also, why, out)
		return
	}
	g := n.hold(now, grant{from: in.From, ask: a.Ask, job: in.Job, slice: a.Slice, also: a.Also, start: a.Start, end: a.End, takes: own != "", gang: a.Plan.Members > 0, peak: peakOf(a.Peak, a.Demand)}, n.holdFor(a))
	n.asked[question{g.from, g.ask}] = g
	n.sendGranted(g, out)
}

// hold keeps free time for whoever asked, under a token of its own, until it lapses.
func (n *Node) hold(now quantity.Instant, of grant, stands time.Duration) *grant {
	g := n.blank()
	*g = of
	n.seq++
	g.token, g.expiry = job.Token{Epoch: n.epoch, Seq: uint64(n.cfg.Number)<<tokenShift | n.seq}, now.Add(stands)
	if g.gang {
		n.gangs++
	}
	n.grants = append(n.grants, g)
	n.each(g.slice, g.also, func(s *slice) {
		inTheWay, free := s.time.Insert(protocol.Reservation{
			ID: reservationID(g.token), Kind: protocol.ForHold, Slice: s.id, Start: g.start, End: g.end, Job: g.job, Token: g.token,
		})
		if !free {
			invariant.Check(false, "node: hold %v overlaps %v %d on %s, which was free", g.token, inTheWay.Kind, inTheWay.ID, s.id)
		}
		n.show(s)
	})
	return g
}

// blank is room for a hold.
func (n *Node) blank() *grant {
	last := len(n.spent) - 1
	if last < 0 {
		return &grant{}
	}
	g := n.spent[last]
	n.spent = n.spent[:last]
	return g
}

// holdFor is how long a hold stands. One for a member of a gang stands as long as the members behind it need for theirs.
func (n *Node) holdFor(a *protocol.Asking) time.Duration {
	return n.cfg.GrantTTL * time.Duration(max(1, min(a.Plan.Members, gang.MostMembers)-a.Plan.Member))
}

// refusal says why the time asked for can't be held, empty if it can.
func (n *Node) refusal(now quantity.Instant, in *protocol.Message, a *protocol.Asking, own job.ID) string {
	switch {
	case !job.ValidID(in.Job):
		return unnamed(in.Job)
	case a.Start >= a.End:
		return "the ask ends before it starts"
	case a.End <= now:
		return "the time asked for is over"
	case n.outlived(in):
		return "it is for an earlier life of the job"
	case a.Start > now.Add(n.cfg.Horizon):
		return fmt.Sprintf("it starts more than %v ahead, which is as far as this node sells", n.cfg.Horizon)
	}
	all := append([]job.SliceID{a.Slice}, a.Also...)
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
		if !a.Demand.Fits(s.desc.Capacity) {
			return fmt.Sprintf("%s: %v is more than its capacity %v", id, a.Demand, s.desc.Capacity)
		}
		if s.time.Full() {
			return fmt.Sprintf("%s: %d reservations is as many as a slice may have", id, timeline.Max)
		}
		if r, ok := s.time.Free(now, max(now, a.Start), a.End, own); !ok {
			return fmt.Sprintf("%s: %s", id, describe(&r))
		}
	}
	return n.overcrowds(now, a.Start, a.End, peakOf(a.Peak, a.Demand), n.hosted(a.Slice, a.Also), job.Token{})
}

// unnamed is why nothing is given to a job whose name is none: what it ran would have no place of its own.
func unnamed(id job.ID) string {
	return fmt.Sprintf("it names no job: %.80q is no name; want %s", id, job.NameRule)
}

// outlived says whether a lease stands here for a later life of the job than the one that a message is about.
func (n *Node) outlived(in *protocol.Message) bool {
	for l := range n.ofJob[in.Job].all {
		if l.generation > in.Generation.Number() {
			return true
		}
	}
	return false
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
func (n *Node) refuse(in *protocol.Message, ask uint64, slice job.SliceID, also []job.SliceID, why string, out *protocol.Out) {
	n.prompt = true
	n.send(out, protocol.Message{
		Kind: protocol.Refused, To: in.From, Body: &protocol.Refusal{Ask: ask, Slice: slice, Text: why}, Job: in.Job, Token: in.Token,
	})
	for _, id := range append([]job.SliceID{slice}, also...) { // the view of any of them may have been the old one
		if s := n.slice(id); s != nil {
			n.showAgain(s)
		}
	}
}

func (n *Node) sendGranted(g *grant, out *protocol.Out) {
	n.send(out, protocol.Message{
		Kind: protocol.Granted, To: g.from, Body: out.Grant(protocol.Grant{Ask: g.ask, Slice: g.slice, Also: g.also,
			Start: g.start, End: g.end, Expiry: g.expiry}), Job: g.job, Token: g.token,
	})
}

// lapse drops the holds that nobody has redeemed in time.
func (n *Node) lapse(now quantity.Instant) {
	for i := 0; i < len(n.grants); {
		switch {
		case n.grants[i].expiry <= now:
			n.dropGrant(n.grants[i].token)
		case n.gangs == 0:
			return // all behind it lapse later
		default:
			i++
		}
	}
}

// lapses is when the next hold does.
func (n *Node) lapses() (first quantity.Instant) {
	first = quantity.Never
	for _, g := range n.grants {
		if first = min(first, g.expiry); n.gangs == 0 {
			break
		}
	}
	return first
}

// dropGrant gives a hold's time back, if there is one of this token. The hold can be read until the next one is made.
func (n *Node) dropGrant(t job.Token) {
	i, found := n.findGrant(t)
	if !found {
		return
	}
	g := n.grants[i]
	n.spent = append(n.spent, g)
	if i == 0 && len(n.grants) > 1 {
		n.grants[0], n.grants = nil, n.grants[1:] // most lapse or are redeemed in their order
	} else {
		n.grants = slices.Delete(n.grants, i, i+1)
	}
	if g.gang {
		n.gangs--
	}
	if g.searched {
		delete(n.probes.standing, g.ticket)
	} else if !g.unasked {
		delete(n.asked, question{g.from, g.ask})
	}
	n.each(g.slice, g.also, func(s *slice) {
		s.time.Remove(reservationID(t))
		n.show(s)
	})
}

func (n *Node) findGrant(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(n.grants, t, func(g *grant, t job.Token) int { return g.token.Compare(t) })
}

// redeem turns a hold into a lease, once. What was redeemed already is confirmed again, with the result if it has ended.
func (n *Node) redeem(now quantity.Instant, in *protocol.Message, w *protocol.Work, out *protocol.Out) {
	if l := n.lease(in.Token); l != nil && l.job == in.Job {
		if l.ended() {
			n.sendResult(l, out)
		} else {
			n.sendLeased(l, out)
			if l.seen() { // the zone asks because it has heard nothing, or has forgotten it in a crash
				n.send(out, protocol.Message{Kind: protocol.Running, To: l.home(), Token: l.token, Job: l.job, Body: out.Beginning(protocol.Beginning{Slice: l.slice, At: l.at})})
			}
		}
		return
	}
	i, found := n.findGrant(in.Token)
	why := "the token lapsed, or is of an earlier boot of this node"
	if found && n.grants[i].job == in.Job {
		why = n.unredeemable(now, n.grants[i], in, w)
	}
	if why != "" {
		n.send(out, protocol.Message{Kind: protocol.RedeemRefused, To: in.From, Token: in.Token, Job: in.Job, Body: &protocol.Refusal{Slice: w.Slice, Text: why}})
		return
	}
	g := n.grants[i]
	zone := n.cfg.Zone
	if in.From.Role == protocol.Zone && in.From.ID != "" {
		zone = job.ZoneID(in.From.ID)
	}
	n.fact(out, protocol.Fact{
		Kind: protocol.LeaseMade, Token: g.token, Job: g.job, Epoch: in.Epoch, Generation: in.Generation.Number(), Zone: zone, Slice: g.slice, Also: g.also,
		Range: w.Range, Start: w.Start, End: w.End, Demand: w.Demand, Peak: w.Peak, Plan: w.Plan, Rank: w.Rank,
	})
	if g.takes {
		n.takeOver(g, out)
	}
	l := n.lease(g.token)
	l.spec = w.Spec
	n.sendLeased(l, out)
}

// unredeemable says why a standing hold can't become this lease, empty if it can.
func (n *Node) unredeemable(now quantity.Instant, g *grant, in *protocol.Message, w *protocol.Work) string {
	switch {
	case w.Slice != g.slice:
		return fmt.Sprintf("the token is for %s", g.slice)
	case w.Start < g.start || w.End > g.end || w.Start >= w.End:
		return fmt.Sprintf("the token is for %s to %s", clock(g.start), clock(g.end))
	case w.End <= now:
		return "its time is over"
	case w.Range.Empty():
		return "there is no work in it"
	case w.Spec == nil:
		return "it does not say what to run"
	case n.outlived(in):
		return "it is for an earlier life of the job"
	}
	why := ""
	n.each(g.slice, g.also, func(s *slice) {
		if unusable, ok := n.usable(s); !ok {
			why = fmt.Sprintf("%s: %s", s.id, unusable)
		} else if !w.Demand.Fits(s.desc.Capacity) {
			why = fmt.Sprintf("%s: %v is more than its capacity %v", s.id, w.Demand, s.desc.Capacity)
		}
	})
	if peak := peakOf(w.Peak, w.Demand); why == "" && (peak.Mean > g.peak.Mean || peak.Deviation > g.peak.Deviation) { // more than the hold was for
		why = n.overcrowds(now, w.Start, w.End, peak, n.hosted(g.slice, g.also), g.token)
	}
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
	n.send(out, protocol.Message{Kind: protocol.Leased, To: l.home(), Token: l.token, Job: l.job, Body: out.Holding(protocol.Holding{Slice: l.slice})})
}
