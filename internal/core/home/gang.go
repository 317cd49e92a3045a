package home

import (
	"cmp"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A gang over several nodes is one claim with members. Prepare is an Ask of each node in turn, Commit a Redeem of each hold once all stand
// and Claimed is synced, Abort a Stop under its token. Of one node it is a job like any other, and nothing here is about it.

// Place is what is asked of one member's node: the reservation of the job's own that it takes over, 0 if it has none there, and the version of
// the view that it was decided on.
type Place struct{ Reservation, Version uint64 }

// Gang has an ask be one of several nodes, whose places these are.
func (a *Ask) Gang(members []protocol.Member, places []Place) {
	a.holds, a.places, a.Version = gang.NewHolds(members), places, places[0].Version
}

// part is what an ask asks of one node now.
func (h *Ledger) part(a *Ask) (node job.NodeID, first job.SliceID, also []job.SliceID) {
	if a.holds == nil {
		return cmp.Or(a.Node, h.supply.Node(a.Slice)), a.Slice, a.Also
	}
	i, all := a.holds.Next(), a.holds.Members()
	first, also = protocol.Part(a.Slice, a.Also, all, i)
	return all[i].Node, first, also
}

// Prepared notes that one more node holds for a gang, and asks the next. It is false once all do, or if that grant is of no use: then the ask is
// taken in as any other (Granted).
func (h *Ledger) Prepared(in *protocol.Message, g *protocol.Grant, now quantity.Instant, out *protocol.Out) bool {
	i, found := h.findAsk(g.Ask)
	if !found || h.asks[i].holds == nil {
		return false
	}
	a := h.asks[i]
	if in.Job != a.Job.ID || g.End < a.End || a.holds.Hold(in.Token) {
		return false
	}
	h.asks = append(h.asks[:i], h.asks[i+1:]...) // to the end, where the latest expire
	next := a.holds.Next()
	a.id, a.expires, a.Version = h.NewAsk(), now.Add(h.cfg.AskTTL), a.places[next].Version
	h.asks = append(h.asks, a)
	h.sendAsk(a, a.places[next].Reservation, out)
	return true
}

// Abort gives up what nodes hold for an ask that comes to nothing. What they do not hear lapses.
func (h *Ledger) Abort(a *Ask, out *protocol.Out) {
	if a.holds == nil || planted.In(planted.KeepHolds) {
		return
	}
	for _, m := range a.holds.Held() {
		h.Send(out, protocol.Message{Kind: protocol.Stop, To: gang.At(&m), Token: m.Token, Job: a.Job.ID, Body: &protocol.Halt{Text: "another member of the gang has no place"}})
	}
}

// course of a gang's claim, begun where there is none: after a crash its members are asked again.
func (l *Lease) courseOf(c *protocol.Claim) *gang.Course {
	if l.course == nil {
		l.course = gang.NewCourse(len(c.Members))
	}
	return l.course
}

// member finds the standing claim of a gang that a node's answer is about, and the place of the member; nil if it is about none.
func (h *Ledger) member(in *protocol.Message) (j *Job, l *Lease, c *protocol.Claim, i int) {
	if j = h.Job(in.Job); j == nil || j.Spec.Topology == job.SameNode {
		return nil, nil, nil, 0
	}
	for k := range j.work().claims {
		c = &j.work().claims[k]
		if i = protocol.MemberOf(c.Members, in.Token); i >= 0 {
			return j, j.Lease(c.Token), c, i
		}
	}
	return nil, nil, nil, 0
}

// memberLeased: a node has made a member's hold a lease.
func (h *Ledger) memberLeased(j *Job, l *Lease, c *protocol.Claim, i int) {
	course := l.courseOf(c)
	course.Leased(i)
	if !l.known && course.Known() && course.Broken() == "" {
		l.known = true
		h.taken(j, c.Token)
	}
	h.stir(j)
}

// memberRefused: it has not, and never will. The others are stopped.
func (h *Ledger) memberRefused(now quantity.Instant, j *Job, l *Lease, c *protocol.Claim, i int, why string, out *protocol.Out) {
	if l.courseOf(c).Refused(i, why) {
		h.proceed(now, j, l, c, out)
	}
}

// memberGone: a member's process is gone. Unless it was done the others are stopped.
func (h *Ledger) memberGone(now quantity.Instant, j *Job, l *Lease, c *protocol.Claim, i int, r *job.Result, out *protocol.Out) {
	if i == 0 && r.Start != 0 {
		h.watch.Began(j, r.Start)
	}
	if l.courseOf(c).Gone(i, r) {
		h.proceed(now, j, l, c, out)
	}
}

// proceed settles a gang's claim once nothing of any member is left; until then it stops those that are left if one has failed them.
func (h *Ledger) proceed(now quantity.Instant, j *Job, l *Lease, c *protocol.Claim, out *protocol.Out) {
	h.stir(j)
	if !l.course.Over() && !(planted.In(planted.SettleHalf) && l.course.Broken() != "") {
		if l.course.Broken() != "" {
			h.repeatGang(now, j, l, c, out)
		}
		return
	}
	if r, why := l.course.Result(); r != nil {
		h.conclude(now, j, j.claim(c.Token), r, protocol.Address{}, out)
	} else {
		members := c.Members
		h.BackOff(now, j, nil, l.won, why)
		h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: c.Token, Text: why, At: now})
		h.confirm(j.ID, members, job.Range{}, out)
		h.settled(now, j, out)
	}
}

// confirm says to the nodes of a settled gang what became of it.
func (h *Ledger) confirm(id job.ID, members []protocol.Member, done job.Range, out *protocol.Out) {
	for i := range members {
		h.Send(out, protocol.Message{Kind: protocol.ResultAck, To: gang.At(&members[i]), Token: members[i].Token, Job: id, Body: out.Acknowledgement(protocol.Acknowledgement{Range: done})})
	}
}

// repeatGang says what is outstanding to the nodes of a gang: Redeem to those that have not said whether they have a lease, Stop to all that are
// left where the gang is to end. Stop goes first: a hold that is given up makes no lease.
func (h *Ledger) repeatGang(now quantity.Instant, j *Job, l *Lease, c *protocol.Claim, out *protocol.Out) {
	course := l.courseOf(c)
	l.sent = now
	stop := course.Broken()
	if planted.In(planted.HalfGang) {
		stop = ""
	}
	if drop := j.fate().dropping; drop.State != job.Waiting {
		stop = drop.Reason
	}
	for i := range c.Members {
		m := &c.Members[i]
		if stop != "" && course.Left(i) {
			halt := &protocol.Halt{Text: stop, Now: l.hurried(now, j)}
			h.Send(out, protocol.Message{Kind: protocol.Stop, To: gang.At(m), Token: m.Token, Job: j.ID, Body: halt})
		}
		if course.Asked(i) {
			h.redeemMember(j, c, i, out)
		}
	}
}

// remindGang is what is due of a gang's claim: nodes that have said nothing are likely to be out of reach, and their slices are left to others
// for a while.
func (h *Ledger) remindGang(now quantity.Instant, j *Job, l *Lease, c *protocol.Claim, out *protocol.Out) {
	course := l.courseOf(c)
	for i := range c.Members {
		if l.sent != 0 && course.Asked(i) {
			h.BackOff(now, j, all(protocol.Part(c.Slice, c.Also, c.Members, i)), l.won, Silent)
		}
	}
	h.repeatGang(now, j, l, c, out)
}

// redeemMember sends Commit to one member's node.
func (h *Ledger) redeemMember(j *Job, c *protocol.Claim, i int, out *protocol.Out) {
	m := &c.Members[i]
	first, also := protocol.Part(c.Slice, c.Also, c.Members, i)
	plan := c.Plan
	plan.Member, plan.Members = i, len(c.Members)
	h.Send(out, protocol.Message{
		Kind: protocol.Redeem, To: gang.At(m), Token: m.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(), Body: out.Work(protocol.Work{Slice: first, Also: also,
			Range: c.Range, Start: c.Start, End: c.End, Demand: c.Demand, Peak: c.Peak, Plan: plan, Rank: protocol.RankOf(j.Spec, j.q.Weight), Spec: j.Spec}),
	})
}
