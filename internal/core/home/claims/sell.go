package claims

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Ask has something asked of the node that offers its slice: the first of the five steps. A reservation of the job's own is taken
// over; 0 if it has none.
func (d *Claimer) Ask(now quantity.Instant, a *Ask, reservation uint64, out *protocol.Out) {
	j := a.Job
	a.generation, a.asked = j.Generation, now
	d.asks.add(a, now.Add(d.cfg.AskTTL))
	j.MakeProgress().Ask(a.Range)
	j.Queue().Ask(1+len(a.Also), a.price())
	d.book.Touch(j)
	d.sendAsk(a, reservation, out)
}

// TakeAsk removes an unanswered ask; nil if it is unknown.
func (d *Claimer) TakeAsk(id uint64) *Ask {
	a := d.asks.take(id)
	if a == nil {
		return nil
	}
	q := a.Job.Queue()
	a.Job.MakeProgress().Answered(a.Range)
	q.Answered(1+len(a.Also), a.price())
	d.book.Touch(a.Job)
	d.book.Freed(q)
	return a
}

// Lapsed is the id of an ask that nobody has answered in time; 0 if there is none.
func (d *Claimer) Lapsed(now quantity.Instant) uint64 {
	if id, at := d.asks.first(); at <= now {
		return id
	}
	return 0
}

// Granted turns a grant into a claim, the second of the five steps: a compare-and-set against committed and claimed
// ranges. The ask was taken (TakeAsk); a grant nobody waits for any more is left to lapse.
func (d *Claimer) Granted(now quantity.Instant, a *Ask, in *protocol.Message, g *protocol.Grant, out *protocol.Out) (sold bool) {
	return in.Job == a.Job.ID && d.sell(now, a, in.Token, a.covered(g), out)
}

// Claim turns a place into a claim that was not asked for by this ledger, but found by a ticket of the job. It is false if that can not be
// sold: a token that the job has had is of a word that was doubled and comes when its lease is over.
func (d *Claimer) Claim(now quantity.Instant, a *Ask, t job.Token, out *protocol.Out) bool {
	if a.Job.History().Of(t) != nil {
		return false
	}
	a.id, a.generation, a.asked = d.NewAsk(), a.Job.Generation, now
	return d.sell(now, a, t, true, out)
}

// sell claims what was asked for, which a node holds under a token, or the nodes of a gang; held is false if that is not all of it.
func (d *Claimer) sell(now quantity.Instant, a *Ask, token job.Token, held bool, out *protocol.Out) bool {
	j := a.Job
	e := j.Ending()
	if e.Final() || j.Generation != a.generation || e.Stopping() || e.Leaving() != "" || !j.Progress().Free(a.Range) || !held ||
		a.holds == nil && taken(j, token) {
		// What was asked for is for sale again.
		d.book.Changed(j)
		d.Abort(a, out)
		return false
	}
	sold := a.Sale
	switch {
	case a.holds != nil:
		sold.Members = a.holds.Members()
		token, sold.Node = sold.Members[0].Token, sold.Members[0].Node
		d.meet(&sold)
	case sold.Node == "":
		sold.Node = d.supply.Node(a.Slice)
	}
	d.pay(now, j.Queue(), a.Bid, out)
	sold.Plan.Resume = j.Progress().Resume()
	sold.Plan.Bars = j.Scores().Bars(&j.Spec.Launch.Adapter.Trials.Stop)
	d.book.Fact(out, protocol.Fact{
		Kind: protocol.Claimed, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Token: token, At: a.asked, Body: out.Sales.Keep(sold),
	})
	st := j.ClaimSet().State(token)
	st.RedeemSent(now, a.id)
	d.book.Stir(j)
	if c := *j.ClaimSet().Claim(token); len(c.Members) > 0 {
		d.RepeatGang(now, j, st, &c, out)
	} else {
		d.Redeem(j, &c, out)
	}
	return true
}

// pay brings a queue's credits up to date and holds the price to them: in the step in which something is claimed at a price, before its
// Claimed, which takes the price. QueueCalibrated has all that the market keeps of a queue, its trust too: here only the credits change.
func (d *Claimer) pay(now quantity.Instant, q *record.Queue, b *protocol.Bid, out *protocol.Out) {
	if b == nil || b.Price == 0 {
		return
	}
	s := d.book.Purses.Refilled(now, &q.Queue)
	b.Price = min(b.Price, s.Credits)
	d.book.Fact(out, protocol.Fact{Kind: protocol.QueueCalibrated, Body: &s})
}

// part is what an ask asks of one node now.
func (d *Claimer) part(a *Ask) (node job.NodeID, first job.SliceID, also []job.SliceID) {
	if a.holds == nil {
		return cmp.Or(a.Node, d.supply.Node(a.Slice)), a.Slice, a.Also
	}
	i, all := a.holds.Next(), a.holds.Members()
	first, also = protocol.Part(a.Slice, a.Also, all, i)
	return all[i].Node, first, also
}

// Asked is the node that an ask waits for, and of which job that is; empty if none has this number.
func (d *Claimer) Asked(id uint64) (node job.NodeID, of job.ID) {
	if a := d.asks.of(id); a != nil {
		node, _, _ = d.part(a)
		return node, a.Job.ID
	}
	return "", ""
}

// Concerns reports whether a node is the one that an ask is of, or one of a gang's. asked is the node that is asked now (Claimer.Asked).
func (a *Ask) Concerns(node, asked job.NodeID) bool {
	if a.holds != nil {
		return slices.ContainsFunc(a.holds.Members(), func(m protocol.Member) bool { return m.Node == node })
	}
	return asked == node
}

// sendAsk sends the first step, to one node.
func (d *Claimer) sendAsk(a *Ask, reservation uint64, out *protocol.Out) {
	j := a.Job
	node, first, also := d.part(a)
	of := out.Askings.Keep(protocol.Asking{Ask: a.id, Placement: protocol.Placement{
		Slice: first, Also: also, Start: a.Start, End: a.End, Demand: a.Demand, Peak: a.Peak,
	}})
	of.Plan.Residence, of.Plan.Resident = a.Plan.Residence, a.Plan.Resident
	if a.holds != nil {
		of.Plan.Member, of.Plan.Members = a.holds.Next(), len(a.holds.Members())
	}
	if reservation != 0 {
		of.Reservation = &protocol.Reservation{ID: reservation, Kind: protocol.ForRigid, Job: j.ID}
	}
	d.Send(out, protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(node)}, Body: of,
		Job: j.ID, Epoch: j.Epoch, Generation: j.Generation,
	})
}
