package home

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Ask is an unanswered Ask: soft, the node's grant is fenced by its own epoch. What is asked for counts as claimed.
type Ask struct {
	Job   *Job
	Slice job.SliceID
	// Node that the slice is of; empty: the one that offers it here.
	Node  job.NodeID
	Also  []job.SliceID
	Range job.Range
	// Start and End of the window, Speed and Demand of the job there, Plan and Bid that it goes by; nil: nobody bid.
	Start, End quantity.Instant
	Speed      int64
	Demand     trp.Vector
	// Peak that the demand is a quantile of; zero where the host's memory is not counted.
	Peak trp.Peak
	Plan protocol.Plan
	Bid  *protocol.Bid
	// Version of the slice's view that it was decided on.
	Version uint64
	// Late is what was spent for it of the budget of jobs that are late.
	Late int64

	id uint64
	// generation of the job that it was decided for.
	generation     job.Generation
	asked, expires quantity.Instant
	// holds and places of a gang over several nodes; nil and none of what one node holds.
	holds  *gang.Holds
	places []Place
}

// ID of the ask.
func (a *Ask) ID() uint64 { return a.id }

// Slices are those that are asked for: of a gang, of the node that is asked now.
func (a *Ask) Slices() []job.SliceID {
	if a.holds != nil && len(a.holds.Held()) < len(a.holds.Members()) {
		return all(protocol.Part(a.Slice, a.Also, a.holds.Members(), a.holds.Next()))
	}
	return all(a.Slice, a.Also)
}

// Ask has something asked of the node that offers its slice: the first of the five steps. A reservation of the job's own is taken
// over; 0 if it has none.
func (h *Ledger) Ask(now quantity.Instant, a *Ask, reservation uint64, out *protocol.Out) {
	j := a.Job
	a.id, a.generation, a.asked, a.expires = h.NewAsk(), j.Generation, now, now.Add(h.cfg.AskTTL)
	h.asks = append(h.asks, a)
	w := j.makeWork()
	w.asked = w.asked.Add(a.Range)
	w.asking++
	j.q.asking += 1 + len(a.Also)
	if a.Bid != nil && !planted.In(planted.ForgetPledged) {
		j.q.pledged += a.Bid.Price
	}
	h.touch(j)
	h.sendAsk(a, reservation, out)
}

func (h *Ledger) sendAsk(a *Ask, reservation uint64, out *protocol.Out) {
	j := a.Job
	node, first, also := h.part(a)
	m := protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(node)}, Body: out.Asking(protocol.Asking{Ask: a.id, Slice: first, Also: also, Start: a.Start, End: a.End, Demand: a.Demand, Peak: a.Peak}), Job: j.ID, Epoch: j.Epoch,
		Generation: j.Generation,
	}
	if a.holds != nil {
		m.Body.(*protocol.Asking).Plan.Member, m.Body.(*protocol.Asking).Plan.Members = a.holds.Next(), len(a.holds.Members())
	}
	if reservation != 0 {
		m.Body.(*protocol.Asking).Reservation = &protocol.Reservation{ID: reservation, Kind: protocol.ForRigid, Job: j.ID}
	}
	h.Send(out, m)
}

// NewAsk numbers an ask. Ids of different lives of this ledger are distinct, since a node answers a repeated id with the
// same grant: they start from the instant it came up, in nanoseconds, and no life makes one a nanosecond.
func (h *Ledger) NewAsk() uint64 {
	h.nextAsk = max(h.nextAsk, uint64(h.since)) + 1
	return h.nextAsk
}

// Granted turns a grant into a claim, the second of the five steps: a compare-and-set against committed and claimed
// ranges. The ask was taken (TakeAsk); a grant nobody waits for any more is left to lapse.
func (h *Ledger) Granted(now quantity.Instant, a *Ask, in *protocol.Message, g *protocol.Grant, out *protocol.Out) (sold bool) {
	j := a.Job
	if in.Job != j.ID {
		return false
	}
	if j.fate().verdict.State.Final() || j.Generation != a.generation || j.fate().dropping.State != job.Waiting || j.Leaving() != "" || j.work().committed.Overlaps(a.Range) || j.work().claimed.Overlaps(a.Range) && !planted.In(planted.SellTwice) || g.End < a.End || j.claim(in.Token) >= 0 {
		// What was asked for is for sale again. Two nodes that give out the same token have the same number: their fault.
		h.changed(j)
		h.Abort(a, out)
		return false
	}
	token, node, members := in.Token, a.Node, []protocol.Member(nil)
	switch {
	case a.holds != nil:
		members = a.holds.Members()
		token, node = members[0].Token, members[0].Node
	case node == "":
		node = h.supply.Node(a.Slice)
	}
	h.pay(now, j.q, a.Bid, out)
	plan := a.Plan
	plan.Resume = j.work().resume
	h.fact(out, protocol.Fact{
		Kind: protocol.Claimed, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Token: token, Node: node, Slice: a.Slice, Also: a.Also, Members: members,
		Speed: a.Speed, Range: a.Range, Start: g.Start, End: g.End, Demand: a.Demand, Peak: a.Peak, Plan: plan, Bid: a.Bid, At: a.asked,
	})
	l := j.Lease(token)
	l.sent, l.won = now, a.id
	h.stir(j)
	c := j.work().claims[j.claim(token)]
	if len(c.Members) > 0 {
		h.repeatGang(now, j, l, &c, out)
	} else {
		h.redeem(j, &c, out)
	}
	return true
}

// Claim turns a grant that was not asked for by this ledger, but found by a ticket of the job, into a claim. It is false if that can not be sold: a token that the job
// has had is of a word that was doubled and comes when its lease is over.
func (h *Ledger) Claim(now quantity.Instant, a *Ask, t job.Token, out *protocol.Out) bool {
	if a.Job.had(t) {
		return false
	}
	a.id, a.generation, a.asked = h.NewAsk(), a.Job.Generation, now
	return h.Granted(now, a, &protocol.Message{Job: a.Job.ID, Token: t}, &protocol.Grant{Start: a.Start, End: a.End}, out)
}

// redeem sends the third step. It is repeated until the node answers, and idempotent by the token.
func (h *Ledger) redeem(j *Job, c *protocol.Claim, out *protocol.Out) {
	h.Send(out, protocol.Message{
		Kind: protocol.Redeem, To: nodeOf(c), Token: c.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(), Body: out.Work(protocol.Work{Slice: c.Slice, Also: c.Also,
			Range: c.Range, Start: c.Start, End: c.End, Demand: c.Demand, Peak: c.Peak, Plan: c.Plan, Rank: protocol.RankOf(j.Spec, j.q.Weight), Spec: j.Spec}),
	})
}

// NotExtended: the node has not moved the lease's end, so the claim is again what it was.
func (h *Ledger) NotExtended(in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	if j, l := h.standing(in); j != nil && l.ask == r.Ask && r.Ask != 0 {
		l.ask = 0
		h.stir(j)
		peak := l.before.peak
		if planted.In(planted.KeepRaised) {
			peak = trp.Peak{}
		}
		h.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: in.Token, Range: l.before.rng, End: l.before.end, Peak: peak})
		h.changed(j)
	}
}

// Extended: the node has moved the lease's end; the claim was extended before it was asked.
func (h *Ledger) Extended(in *protocol.Message, e *protocol.Extension) {
	if j, l := h.standing(in); l != nil && l.ask == e.Ask {
		l.ask = 0
		h.stir(j)
	}
}

// TakeAsk removes an unanswered ask; nil if it is unknown.
func (h *Ledger) TakeAsk(id uint64) *Ask {
	i, found := h.findAsk(id)
	if !found {
		return nil
	}
	a := h.asks[i]
	h.asks = slices.Delete(h.asks, i, i+1)
	w, q := a.Job.makeWork(), a.Job.q
	w.asked = w.asked.Remove(a.Range)
	w.asking--
	q.asking -= 1 + len(a.Also)
	if a.Bid != nil && !planted.In(planted.ForgetPledged) {
		q.pledged -= a.Bid.Price
	}
	h.touch(a.Job)
	h.freed(q)
	return a
}

func (h *Ledger) findAsk(id uint64) (int, bool) {
	return slices.BinarySearchFunc(h.asks, id, func(a *Ask, id uint64) int { return cmp.Compare(a.id, id) })
}

// Lapsed is the id of an ask that nobody has answered in time; 0 if there is none.
func (h *Ledger) Lapsed(now quantity.Instant) uint64 {
	if len(h.asks) > 0 && h.asks[0].expires <= now {
		return h.asks[0].id
	}
	return 0
}
