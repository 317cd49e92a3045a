package market

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// clear clears offers, one after another or those of a node together, and asks nodes for what is won.
func (f *Floor) clear(now quantity.Instant, offers []offer, r *round, uncontended bool, out *protocol.Out) {
	joint := f.cfg.Market.Joint
	if joint {
		slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.slice.Node(), b.slice.Node()) })
	}
	f.refreshIndex(now)
	f.skipped.reset(len(f.classes))
	for len(offers) > 0 {
		n := 1
		if r == nil && !joint && !offers[0].full && !f.skipped.off && f.skip(now, &offers[0]) {
			offers = offers[1:]
			continue
		}
		for joint && n < len(offers) && offers[n].slice.Node() == offers[0].slice.Node() {
			n++
		}
		f.countSkipped(now)
		f.clearTogether(now, offers[:n], r, uncontended, out)
		f.refreshIndex(now)
		f.skipped.reset(len(f.classes))
		offers = offers[n:]
	}
	f.countSkipped(now)
}

// clearTogether collects the bids for some offers, and then sells.
func (f *Floor) clearTogether(now quantity.Instant, offers []offer, r *round, uncontended bool, out *protocol.Out) {
	if r == nil {
		f.nextRound++
	}
	f.refreshIndex(now)
	f.sit()
	for i := range offers {
		o := &offers[i]
		if w := o.find(); w != nil {
			f.gather(now, int32(i), o, w, r, uncontended)
		} else {
			f.gone(o, r)
		}
	}
	f.enlist(now, offers, uncontended)
	// By window, job and variant, so that nothing depends on who was asked or answered first.
	slices.SortFunc(f.bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(a.offer, b.offer), cmp.Compare(a.job.Name(), b.job.Name()), cmp.Compare(a.ID, b.ID))
	})
	f.pickWinners(now, offers)
	id := f.nextRound
	if r != nil {
		id = r.id
	}
	for i := range offers {
		if w := offers[i].find(); w != nil {
			f.settle(now, &offers[i], w, int32(i), id, out)
		}
	}
	f.rise()
}

// gone tells those who bid for a window that it is no longer there.
func (f *Floor) gone(o *offer, r *round) {
	if r == nil {
		return
	}
	for i := range r.asked {
		c := &r.asked[i]
		variants := c.of(o.window)
		for k := range variants {
			f.deny(c, &variants[k], "the window is gone: something was reserved there, or its node is")
		}
	}
}

// tick is the unit of time in clearing.
const tick = time.Millisecond

// pickWinners clears the bids of offers of windows and marks those that win: the jobs that are late first, as far as they may,
// the rest for the largest sum.
func (f *Floor) pickWinners(now quantity.Instant, list []offer) {
	offers := len(list)
	f.tables = slices.Grow(f.tables[:0], offers)[:offers]
	for i := range f.tables {
		f.tables[i] = f.tables[i][:0]
	}
	f.number()
	for i := range f.bids {
		t := &f.bids[i]
		t.row = int32(len(f.tables[t.offer]))
		start, end := f.ticks(now, t)
		f.tables[t.offer] = append(f.tables[t.offer], clearing.Bid{Start: start, End: end, Weight: t.weight, Job: t.number, ID: t.row,
			Work: t.work})
	}
	fixed := f.lateBids(now, list)
	pick := f.pickOne
	if offers > 1 {
		pick = f.pickJointly
	}
	pick(fixed)
	if more := f.idle(now, offers); len(more) > 0 {
		pick(append(fixed, more...))
	}
	if offers > 1 {
		f.stats.Regret += f.joint.Regret()
		f.stats.Value += f.joint.Value
		f.stats.Bound += f.joint.Bound
	}
	f.charge(now)
}

// ticks are where a bid begins and ends as clearing counts, from now on.
func (f *Floor) ticks(now quantity.Instant, t *bid) (start, end int64) {
	start = int64(t.Start.Sub(now) / tick)
	if t.end == quantity.Never {
		return start, max(start+1, int64(f.cfg.Horizon/tick)) // as far as windows are sold
	}
	return start, int64((t.end.Sub(now) + tick - 1) / tick)
}

// idle are the best bids that begin soon of windows of which nothing would be sold now, because what is planned there
// begins later: a window that somebody can use now is not kept for later, or it might be for ever.
func (f *Floor) idle(now quantity.Instant, offers int) []int32 {
	sold := f.horizonOf(now)
	best, used := f.soonest[:0], f.used[:0]
	for range offers {
		best, used = append(best, -1), append(used, false)
	}
	for i := range f.bids {
		t := &f.bids[i]
		if t.Start > sold {
			continue
		}
		used[t.offer] = used[t.offer] || t.won
		if b := best[t.offer]; t.weight > 0 && (b < 0 || t.weight > f.bids[b].weight) {
			best[t.offer] = int32(i)
		}
	}
	f.soonest, f.used = best, used
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
func (f *Floor) pickOne(fixed []int32) {
	f.first = f.first[:0]
	for _, i := range fixed {
		f.first = append(f.first, f.bids[i].row)
	}
	if f.cfg.Market.Exclusive {
		f.won = f.clearer.Exclusive(f.tables[0], f.first).Won
	} else {
		f.won, _, _ = f.clearer.Around(f.tables[0], f.first)
	}
	for i := range f.bids {
		f.bids[i].won = false
	}
	for _, i := range f.won {
		f.bids[i].won = true // of one lot the bids are in the order of its table
	}
}

// pickJointly clears several windows together.
func (f *Floor) pickJointly(fixed []int32) {
	var list []clearing.At
	for _, i := range fixed {
		list = append(list, clearing.At{Window: f.bids[i].offer, Bid: f.bids[i].row})
	}
	f.joint = f.clearer.Joint(f.tables, list)
	for i := range f.bids {
		t := &f.bids[i]
		t.won = slices.Contains(f.joint.Won[t.offer], t.row)
	}
}

// charge says what each winner pays: of one window, where prices are VCG's, those that won in it. Who goes first because it has
// waited too long did not win by its bid, and pays nothing.
func (f *Floor) charge(now quantity.Instant) {
	switch f.cfg.Market.Payment {
	case FirstPrice:
		for i := range f.bids {
			if t := &f.bids[i]; t.won && !t.free {
				t.price = f.offered(now, t)
			}
		}
	case Free:
	case VCG:
		for k, price := range f.clearer.Prices(f.tables[0], f.won) {
			t := &f.bids[f.won[k]]
			t.price = price
			if f.cfg.Market.Weights.Rates() {
				t.price = quantity.MulDiv(f.offered(now, t), price, max(1, t.weight))
			}
		}
	}
}

// offered is what a bid offers to pay. Where weights are rates it is the score, so that a credit is a millisecond at a score of 1 there
// too.
func (f *Floor) offered(now quantity.Instant, t *bid) int64 {
	if f.cfg.Market.Weights.Rates() {
		return scaled(t.total, f.fullness(now, t.job))
	}
	return t.weight
}

// number gives the jobs of the bids dense numbers, and their work: two bids of one job are of one work if they share
// a unit, or if the job may run no second subjob.
func (f *Floor) number() {
	if len(f.bids) == 0 {
		return
	}
	order := f.order[:0]
	for i := range f.bids {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(i, k int32) int {
		a, b := &f.bids[i], &f.bids[k]
		return cmp.Or(cmp.Compare(a.job.Name(), b.job.Name()), cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(i, k))
	})
	number, work, reach := int32(-1), int32(0), int64(0)
	for k, i := range order {
		t := &f.bids[i]
		if k == 0 || f.bids[order[k-1]].job != t.job {
			number, work, reach = number+1, 0, 0
		} else if t.Range.From >= reach && !f.cfg.Market.Exclusive && t.job.Busy()+1 < t.job.Spec().Parallelism {
			work++
		}
		reach = max(reach, t.Range.To)
		t.number, t.work = number, work
	}
	f.order = order
}

// scale lowers the weights of bids of queues that run short.
func (f *Floor) scale(now quantity.Instant, bids []bid) {
	for i := range bids {
		t := &bids[i]
		t.weight = scaled(t.weight, f.fullness(now, t.job))
	}
}

// fullness of the purse of a job's queue, in parts per thousand: bids count as far as it is full.
func (f *Floor) fullness(now quantity.Instant, j *Job) int64 {
	if f.cfg.Market.Payment == Free {
		return full
	}
	purse, most := f.sale.Purse(now, j)
	if purse >= most {
		return full
	}
	return max(quantity.MulDiv(purse, full, most), leastScale)
}

// scaled is a weight that counts so far, but not nothing.
func scaled(weight, fullness int64) int64 {
	if fullness >= full || weight <= 0 {
		return weight
	}
	return max(1, quantity.MulDiv(weight, fullness, full))
}

// price of a bid that has won, in credits: never more than its queue can pay.
func (f *Floor) price(now quantity.Instant, t *bid) int64 {
	if t.price == 0 {
		return 0
	}
	credits := t.price / score.One
	// weights have no time in them, and who takes a window for longer pays for longer
	if !f.cfg.Market.PerTime || f.cfg.Market.Weights.Rates() {
		credits = quantity.MulDiv(t.price, min(t.end.Sub(t.Start), PurseTime).Milliseconds(), score.One)
	}
	purse, _ := f.sale.Purse(now, t.job)
	return min(credits, purse)
}

const (
	// PurseTime is the refill that a full purse holds. A queue's bids count as far as its purse is full, so that what it won
	// lately is soon paid back in what it wins next; docs/incentives.md has what longer ones leave to be gained.
	PurseTime = time.Hour
	// leastScale, in parts per thousand, is what remains of the bids of a queue without credits: they still win where nobody
	// else wants the time, and the better of them before the worse.
	leastScale = 1
	// full is the fullness of a purse that is full.
	full = 1000
)
