package home

import (
	"cmp"
	"slices"

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
	Also  []job.SliceID
	Range job.Range
	// Start and End of the window, Speed and Demand of the job there, Plan and Bid that it goes by; nil: nobody bid.
	Start, End quantity.Instant
	Speed      int64
	Demand     trp.Vector
	Plan       protocol.Plan
	Bid        *protocol.Bid
	// Version of the slice's view that it was decided on.
	Version uint64
	// Late is what was spent for it of the budget of jobs that are late.
	Late int64

	id uint64
	// generation of the job that it was decided for.
	generation     job.Generation
	asked, expires quantity.Instant
}

// ID of the ask.
func (a *Ask) ID() uint64 { return a.id }

// Slices are those that are asked for.
func (a *Ask) Slices() []job.SliceID { return all(a.Slice, a.Also) }

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
	m := protocol.Message{
		Kind: protocol.Ask, To: protocol.Address{Role: protocol.Node, ID: string(h.supply.Node(a.Slice))}, Ask: a.id, Job: j.ID, Epoch: j.Epoch,
		Generation: j.Generation, Slice: a.Slice, Also: a.Also, Start: a.Start, End: a.End, Demand: a.Demand,
	}
	if reservation != 0 {
		m.Reservation = &protocol.Reservation{ID: reservation, Kind: protocol.ForRigid, Job: j.ID}
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
func (h *Ledger) Granted(now quantity.Instant, a *Ask, in *protocol.Message, out *protocol.Out) (sold bool) {
	j := a.Job
	if in.Job != j.ID {
		return false
	}
	if j.fate().verdict.State.Final() || j.Generation != a.generation || j.fate().dropping.State != job.Waiting || j.work().committed.Overlaps(a.Range) || j.work().claimed.Overlaps(a.Range) && !planted.In(planted.SellTwice) || in.End < a.End || j.claim(in.Token) >= 0 {
		// What was asked for is for sale again. Two nodes that give out the same token have the same number: their fault.
		h.changed(j)
		return false
	}
	h.pay(now, j.q, a.Bid, out)
	plan := a.Plan
	plan.Resume = j.work().resume
	h.fact(out, protocol.Fact{
		Kind: protocol.Claimed, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Token: in.Token, Node: h.supply.Node(a.Slice), Slice: a.Slice, Also: a.Also,
		Speed: a.Speed, Range: a.Range, Start: in.Start, End: in.End, Demand: a.Demand, Plan: plan, Bid: a.Bid, At: a.asked,
	})
	l := j.Lease(in.Token)
	l.sent, l.won = now, a.id
	h.stir(j)
	c := j.work().claims[j.claim(in.Token)]
	h.redeem(j, &c, out)
	return true
}

// redeem sends the third step. It is repeated until the node answers, and idempotent by the token.
func (h *Ledger) redeem(j *Job, c *protocol.Claim, out *protocol.Out) {
	h.Send(out, protocol.Message{
		Kind: protocol.Redeem, To: nodeOf(c), Token: c.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(), Slice: c.Slice, Also: c.Also,
		Range: c.Range, Start: c.Start, End: c.End, Demand: c.Demand, Plan: c.Plan, Spec: j.Spec,
	})
}

// NotExtended: the node has not moved the lease's end, so the claim is again what it was.
func (h *Ledger) NotExtended(in *protocol.Message, out *protocol.Out) {
	if j, l := h.standing(in); j != nil && l.ask == in.Ask && in.Ask != 0 {
		l.ask = 0
		h.stir(j)
		h.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: in.Token, Range: l.before.Range, End: l.before.End})
		h.changed(j)
	}
}

// Extended: the node has moved the lease's end; the claim was extended before it was asked.
func (h *Ledger) Extended(in *protocol.Message) {
	if j, l := h.standing(in); l != nil && l.ask == in.Ask {
		l.ask = 0
		h.stir(j)
	}
}

// TakeAsk removes an unanswered ask; nil if it is unknown.
func (h *Ledger) TakeAsk(id uint64) *Ask {
	i, found := slices.BinarySearchFunc(h.asks, id, func(a *Ask, id uint64) int { return cmp.Compare(a.id, id) })
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

// Lapsed is the id of an ask that nobody has answered in time; 0 if there is none.
func (h *Ledger) Lapsed(now quantity.Instant) uint64 {
	if len(h.asks) > 0 && h.asks[0].expires <= now {
		return h.asks[0].id
	}
	return 0
}
