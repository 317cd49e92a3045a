package zone

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// clear clears lots, one after another or those of a node together, and asks nodes for what is won.
func (z *Zone) clear(now quantity.Instant, lots []lot, r *round, out *protocol.Out) {
	joint := z.cfg.Market.Joint
	if joint {
		slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.slice.view.Node, b.slice.view.Node) })
	}
	for len(lots) > 0 {
		n := 1
		for joint && n < len(lots) && lots[n].slice.view.Node == lots[0].slice.view.Node {
			n++
		}
		z.clearTogether(now, lots[:n], r, out)
		lots = lots[n:]
	}
}

// clearTogether collects the bids for some lots, and then sells.
func (z *Zone) clearTogether(now quantity.Instant, lots []lot, r *round, out *protocol.Out) {
	if r == nil {
		z.nextRnd++
	}
	z.listen(now)
	z.tenders = z.tenders[:0]
	for i := range lots {
		l := &lots[i]
		if w := l.find(); w != nil {
			z.lotAt = int32(i)
			z.gather(now, l, w, r)
		} else {
			z.gone(l, r)
		}
	}
	// By window, job and variant, so that nothing depends on who was asked or answered first.
	slices.SortFunc(z.tenders, func(a, b tender) int {
		return cmp.Or(cmp.Compare(a.lot, b.lot), cmp.Compare(a.job.Job, b.job.Job), cmp.Compare(a.ID, b.ID))
	})
	z.pickWinners(now, len(lots))
	id := z.nextRnd
	if r != nil {
		id = r.id
	}
	for i := range lots {
		if w := lots[i].find(); w != nil {
			z.settleLot(now, &lots[i], w, int32(i), id, out)
		}
	}
}

// gone tells those who bid for a window that it is no longer there.
func (z *Zone) gone(l *lot, r *round) {
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		variants := c.of(l.window)
		for j := range variants {
			z.deny(c, &variants[j], "the window is gone: something was reserved there, or its node is")
		}
	}
}

// tick is the unit of time in clearing.
const tick = time.Millisecond

// pickWinners clears the tenders of lots of windows and marks those that win: the jobs that have waited too long first,
// the rest for the largest sum.
func (z *Zone) pickWinners(now quantity.Instant, lots int) {
	z.tables = slices.Grow(z.tables[:0], lots)[:lots]
	for i := range z.tables {
		z.tables[i] = z.tables[i][:0]
	}
	z.number()
	z.scale(now)
	for i := range z.tenders {
		t := &z.tenders[i]
		t.bid = int32(len(z.tables[t.lot]))
		start := int64(t.Start.Sub(now) / tick)
		end := max(start+1, int64(z.cfg.Horizon/tick)) // of what has no end: as far as windows are sold
		if t.end != quantity.Never {
			end = int64((t.end.Sub(now) + tick - 1) / tick)
		}
		z.tables[t.lot] = append(z.tables[t.lot], clearing.Bid{Start: start, End: end, Weight: t.weight, Job: t.number, ID: t.bid, Work: t.work})
	}
	fixed := z.starvers(now)
	pick := z.pickOne
	if lots > 1 {
		pick = z.pickJointly
	}
	pick(fixed)
	if more := z.idle(now, lots); len(more) > 0 {
		pick(append(fixed, more...))
	}
	if lots > 1 {
		z.stats.Regret += z.joint.Regret()
		z.stats.Value += z.joint.Value
		z.stats.Bound += z.joint.Bound
	}
	z.charge()
}

// idle are the best tenders that begin soon of windows of which nothing would be sold now, because what is planned there
// begins later: a window that somebody can use now is not kept for later, or it might be for ever.
func (z *Zone) idle(now quantity.Instant, lots int) []int32 {
	sold := z.horizonOf(now)
	best, used := z.soonest[:0], z.used[:0]
	for range lots {
		best, used = append(best, -1), append(used, false)
	}
	for i := range z.tenders {
		t := &z.tenders[i]
		if t.Start > sold {
			continue
		}
		used[t.lot] = used[t.lot] || t.won
		if b := best[t.lot]; t.weight > 0 && (b < 0 || t.weight > z.tenders[b].weight) {
			best[t.lot] = int32(i)
		}
	}
	z.soonest, z.used = best, used
	n := 0
	for lot, i := range best {
		if i >= 0 && !used[lot] {
			best[n] = i
			n++
		}
	}
	return best[:n]
}

// pickOne clears one window around what is fixed.
func (z *Zone) pickOne(fixed []int32) {
	z.first = z.first[:0]
	for _, f := range fixed {
		z.first = append(z.first, z.tenders[f].bid)
	}
	if z.cfg.Market.Exclusive {
		z.won = z.clearer.Exclusive(z.tables[0], z.first).Won
	} else {
		z.won, _, _ = z.clearer.Around(z.tables[0], z.first)
	}
	for i := range z.tenders {
		z.tenders[i].won = false
	}
	for _, i := range z.won {
		z.tenders[i].won = true // of one lot the tenders are in the order of its table
	}
}

// pickJointly clears several windows together.
func (z *Zone) pickJointly(fixed []int32) {
	var list []clearing.At
	for _, f := range fixed {
		list = append(list, clearing.At{Window: z.tenders[f].lot, Bid: z.tenders[f].bid})
	}
	z.joint = z.clearer.Joint(z.tables, list)
	for i := range z.tenders {
		t := &z.tenders[i]
		t.won = slices.Contains(z.joint.Won[t.lot], t.bid)
	}
}

// charge says what each winner pays: of one window, where prices are VCG's, those that won in it. Who goes first because it has
// waited too long did not win by its bid, and pays nothing.
func (z *Zone) charge() {
	switch z.cfg.Market.Payment {
	case market.FirstPrice:
		for i := range z.tenders {
			if t := &z.tenders[i]; t.won && !t.free {
				t.price = t.weight
			}
		}
	case market.Free:
	case market.VCG:
		for k, price := range z.clearer.Prices(z.tables[0], z.won) {
			z.tenders[z.won[k]].price = price
		}
	}
}

// number gives the jobs of the tenders dense numbers, and their work: two tenders of one job are of one work if they share
// a unit, or if the job may run no second subjob.
func (z *Zone) number() {
	if len(z.tenders) == 0 {
		return
	}
	order := z.order[:0]
	for i := range z.tenders {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &z.tenders[i], &z.tenders[j]
		return cmp.Or(cmp.Compare(a.job.Job, b.job.Job), cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(i, j))
	})
	number, work, reach := int32(-1), int32(0), int64(0)
	for k, i := range order {
		t := &z.tenders[i]
		if k == 0 || z.tenders[order[k-1]].job != t.job {
			number, work, reach = number+1, 0, 0
		} else if t.Range.From >= reach && !z.cfg.Market.Exclusive && len(t.job.Claims)+t.job.asking+1 < t.job.Spec.Parallelism {
			work++
		}
		reach = max(reach, t.Range.To)
		t.number, t.work = number, work
	}
	z.order = order
}
