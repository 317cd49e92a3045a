package claims

import (
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A gang over several nodes is one claim with members. Prepare is an Ask of each node in turn, Commit a Redeem of each hold once all stand
// and Claimed is synced, Abort a Stop under its token. Of one node it is a job like any other, and nothing here is about it.

// Prepared notes that one more node holds for a gang, and asks the next. It is false once all do, or if that grant is of no use: then the
// ask is taken in as any other (Granted).
func (d *Claimer) Prepared(in *protocol.Message, g *protocol.Grant, now quantity.Instant, out *protocol.Out) bool {
	a := d.asks.of(g.Ask)
	if a == nil || a.holds == nil || in.Job != a.Job.ID || g.Start > a.Start || g.End < a.End || taken(a.Job, in.Token) ||
		protocol.MemberOf(a.holds.Held(), in.Token) >= 0 || a.holds.Hold(in.Token) {
		return false
	}
	d.asks.take(g.Ask)
	next := a.holds.Next()
	a.Version = a.places[next].Version
	d.asks.add(a, now.Add(d.cfg.AskTTL)) // at the end, where the latest expire
	d.sendAsk(a, a.places[next].Reservation, out)
	return true
}

// meet says in a sale to several nodes where its members find each other.
func (d *Claimer) meet(sold *protocol.Sale) {
	if d.cfg.Ports == (gang.Ports{}) {
		return
	}
	var nodes []job.NodeID
	var said []string
	for i := range sold.Members {
		first, _ := protocol.Part(sold.Slice, sold.Also, sold.Members, i)
		nodes, said = append(nodes, sold.Members[i].Node), append(said, d.supply.Address(first))
	}
	sold.Plan.Addresses, sold.Plan.Port = gang.Addresses(nodes, said), d.cfg.Ports.Of(sold.Members[0].Token)
}

// Abort gives up nodes' holds for an ask that comes to nothing. Holds of nodes that miss the message lapse.
func (d *Claimer) Abort(a *Ask, out *protocol.Out) {
	if a.holds == nil {
		return
	}
	for _, m := range a.holds.Held() {
		halt := &protocol.Halt{Text: "another member of the gang has no place"}
		d.Send(out, protocol.Message{Kind: protocol.Stop, To: gang.At(&m), Token: m.Token, Job: a.Job.ID, Body: halt})
	}
}

// Member finds the standing claim of a gang that a node's answer is about, and the place of the member; nil if it is about none.
func (d *Claimer) Member(in *protocol.Message) (j *record.Job, st *standing.ClaimState, c *protocol.Claim, i int) {
	if j = d.book.Job(in.Job); j == nil || j.Spec.Topology == job.SameNode {
		return nil, nil, nil, 0
	}
	if st, c, i = j.ClaimSet().Member(in.Token); c == nil {
		return nil, nil, nil, 0
	}
	return j, st, c, i
}

// memberLeased: a node has made a member's hold a lease.
func (d *Claimer) memberLeased(j *record.Job, st *standing.ClaimState, c *protocol.Claim, i int) {
	course := st.Course(c)
	course.Leased(i)
	if !st.Known() && course.Known() && course.Broken() == "" {
		st.Confirm()
		d.Delays.Taken(j, c)
	}
	d.book.Stir(j)
}

// RepeatGang resends what is outstanding to the nodes of a gang: Redeem to those whose lease is not known, Stop to all that are left where
// the gang is to end. Stop goes first: a hold that is given up makes no lease.
func (d *Claimer) RepeatGang(now quantity.Instant, j *record.Job, st *standing.ClaimState, c *protocol.Claim, out *protocol.Out) {
	course := st.Course(c)
	st.Send(now)
	stop := course.Broken()
	if e := j.Ending(); e.Stopping() {
		stop = e.Planned().Reason
	}
	for i := range c.Members {
		m := &c.Members[i]
		if stop != "" && course.Left(i) {
			d.Send(out, protocol.Message{Kind: protocol.Stop, To: gang.At(m), Token: m.Token, Job: j.ID, Body: halt(now, j, st, stop)})
		}
		if course.Asked(i) {
			d.redeemMember(j, c, i, out)
		}
	}
}

// remindGang is what is due of a gang's claim: nodes that have said nothing are likely to be out of reach, and their slices are left to
// others for a while.
func (d *Claimer) remindGang(now quantity.Instant, j *record.Job, st *standing.ClaimState, c *protocol.Claim, out *protocol.Out) {
	course := st.Course(c)
	for i := range c.Members {
		if st.Sent() != 0 && course.Asked(i) {
			d.Silent(now, j, standing.Slices(protocol.Part(c.Slice, c.Also, c.Members, i)), st.WonBy())
		}
	}
	d.RepeatGang(now, j, st, c, out)
}

// redeemMember sends Commit to one member's node.
func (d *Claimer) redeemMember(j *record.Job, c *protocol.Claim, i int, out *protocol.Out) {
	m := &c.Members[i]
	part := c.Placement
	part.Slice, part.Also = protocol.Part(c.Slice, c.Also, c.Members, i)
	part.Plan.Member, part.Plan.Members = i, len(c.Members)
	d.Send(out, protocol.Message{
		Kind: protocol.Redeem, To: gang.At(m), Token: m.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(),
		Body: out.Works.Keep(protocol.Work{Placement: part, Rank: protocol.RankOf(j.Spec, j.Queue().Weight), Spec: j.Spec}),
	})
}
