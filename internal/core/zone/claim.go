package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// ask is an unanswered Ask: soft, the node's grant is fenced by its own epoch.
type ask struct {
	id  uint64
	job *Job
	// generation of the job that it was decided for.
	generation job.Generation
	slice      *slice
	also       []job.SliceID
	piece      market.Piece
	expires    quantity.Instant
	// asked is when, version the slice's view that it was decided on.
	asked   quantity.Instant
	version uint64
}

// on does something to every slice that was asked for.
func (a *ask) on(z *Zone, do func(*slice)) {
	do(a.slice)
	z.mark(a.slice)
	for _, id := range a.also {
		s := z.site(id)
		do(s)
		z.mark(s)
	}
}

// granted turns a grant into a claim, the second of the five steps: a compare-and-set against committed and claimed
// ranges. A grant nobody waits for any more is left to lapse.
func (z *Zone) granted(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	a := z.takeAsk(in.Ask)
	if a == nil || in.Job != a.job.ID {
		return
	}
	j := a.job
	if j.fate().verdict.State.Final() || j.Generation != a.generation || j.fate().dropping.State != job.Waiting || j.work().committed.Overlaps(a.piece.Range) || j.work().claimed.Overlaps(a.piece.Range) && !planted.In(planted.SellTwice) || in.End < a.piece.End || j.claim(in.Token) >= 0 {
		// What was asked for is for sale again. Two nodes that give out the same token have the same number: their fault.
		z.changed(j)
		return
	}
	z.pay(now, j.q, a.piece.Bid, out)
	z.fact(out, protocol.Fact{
		Kind: protocol.Claimed, Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Token: in.Token, Node: a.slice.view.Node, Slice: a.slice.id, Also: a.also,
		Speed: a.piece.Speed, Range: a.piece.Range, Start: in.Start, End: in.End, Demand: a.piece.Demand,
		Plan: protocol.Plan{Run: a.piece.Run, Wall: a.piece.Wall, Resume: j.work().resume, Window: a.piece.Window, Round: a.piece.Round, Option: a.piece.Option},
		Bid:  a.piece.Bid, At: a.asked,
	})
	l := j.lease(in.Token)
	l.sent, l.won = now, a.id
	z.stir(j)
	c := j.work().claims[j.claim(in.Token)]
	z.redeem(j, &c, out)
}

// redeem sends the third step. It is repeated until the node answers, and idempotent by the token.
func (z *Zone) redeem(j *Job, c *protocol.Claim, out *protocol.Out) {
	z.send(out, protocol.Message{
		Kind: protocol.Redeem, To: nodeOf(c), Token: c.Token, Job: j.ID, Epoch: j.Epoch, Generation: c.Generation.Number(), Slice: c.Slice, Also: c.Also,
		Range: c.Range, Start: c.Start, End: c.End, Demand: c.Demand, Plan: c.Plan, Spec: j.Spec,
	})
}

// refused: the view was stale, a fresh Offer follows; or an extension was not to be had.
func (z *Zone) refused(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if a := z.takeAsk(in.Ask); a != nil {
		entryOf(a.job).rigid.Refused(now)
		z.backOff(now, a.job, z.present(a.version, a.slice.id, a.also), a.id, in.Text)
		return
	}
	if id, sl, version, ok := z.planner.Refuse(in.Ask); ok {
		if j := z.jobs[id]; j != nil && j.alive > 0 {
			z.backOff(now, j, z.present(version, sl.Name(), nil), in.Ask, in.Text)
		}
		return
	}
	if j, l := z.standing(in); j != nil && l.ask == in.Ask && in.Ask != 0 {
		l.ask = 0
		z.stir(j)
		z.fact(out, protocol.Fact{Kind: protocol.ClaimExtended, Job: j.ID, Token: in.Token, Range: l.before.Range, End: l.before.End})
		z.changed(j)
	}
}

// present are the slices that something was asked of, as long as the first shows the view that this was decided on: what was
// refused on an older one is no longer on offer.
func (z *Zone) present(version uint64, id job.SliceID, also []job.SliceID) []*slice {
	if s := z.site(id); s.view != nil && s.view.Version > version {
		return nil
	}
	return z.sitesOf(id, also)
}

// extended: the node has moved the lease's end; the claim was extended before it was asked.
func (z *Zone) extended(in *protocol.Message) {
	if j, l := z.standing(in); l != nil && l.ask == in.Ask {
		l.ask = 0
		z.stir(j)
	}
}

// takeAsk removes an unanswered ask; nil if it is unknown.
func (z *Zone) takeAsk(id uint64) *ask {
	i, found := slices.BinarySearchFunc(z.asks, id, func(a *ask, id uint64) int { return cmp.Compare(a.id, id) })
	if !found {
		return nil
	}
	a := z.asks[i]
	z.asks = slices.Delete(z.asks, i, i+1)
	a.on(z, func(s *slice) { s.asks = slices.DeleteFunc(s.asks, func(b *ask) bool { return a == b }) })
	w := a.job.makeWork()
	w.asked = w.asked.Remove(a.piece.Range)
	w.asking--
	a.job.q.asking -= 1 + len(a.also)
	if b := a.piece.Bid; b != nil && !planted.In(planted.ForgetPledged) {
		a.job.q.pledged -= b.Price
	}
	z.touch(a.job)
	z.freed(a.job.q)
	return a
}

// lapse forgets asks that nobody answered in time.
func (z *Zone) lapse(now quantity.Instant) {
	for len(z.asks) > 0 && z.asks[0].expires <= now {
		a := z.takeAsk(z.asks[0].id)
		z.backOff(now, a.job, z.sitesOf(a.slice.id, a.also), a.id, silent)
	}
	z.planner.Lapse(now)
}

// unanswered is when the first of the messages to nodes that wait for an answer, or a slice that is left alone, is to be
// looked at again.
func (z *Zone) unanswered() quantity.Instant {
	wake := min(z.planner.Unanswered(), z.stales.Next(), z.resting.Next(), z.avoiding.Next())
	if len(z.asks) > 0 {
		wake = min(wake, z.asks[0].expires)
	}
	return wake
}
