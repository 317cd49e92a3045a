package auction

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
)

// plan is the winning bids for windows that are cleared together. Invariant: the winners in a window do not overlap in time; those that are
// fixed first because their jobs are late are among them, as far as the budget goes, and the rest is the largest sum around them.
type plan struct {
	cfg    *Config
	est    *index.Estimator
	late   *lateness.Allowance
	purses *purses
	stats  *status.Negotiation
	// bids by window, job and variant, and the table that clearing has of each window.
	bids   []bid
	tables [][]clearing.Bid
	// order, fixed, first, soonest, used and winners are room for a clearing: bids in some order, the late jobs' that go first, their rows,
	// the best bid of a window that begins soon, whether anything is sold there now, and the winners in one window.
	order, fixed, first, soonest []int32
	used                         []bool
	winners                      []*bid
	clearer                      clearing.Clearer
	// won are the winners of the latest clearing of one window, joint the latest plan for several.
	won   []int32
	joint clearing.Plan
}

// sort orders the bids by window, job and variant, so that nothing depends on the order of asking or answering.
func (p *plan) sort() {
	slices.SortFunc(p.bids, func(a, b bid) int {
		return cmp.Or(cmp.Compare(a.offer, b.offer), index.ByName(a.Job, b.Job), cmp.Compare(a.ID, b.ID))
	})
}

// of are the bids for one window.
func (p *plan) of(at int32) []bid {
	by := func(t bid, at int32) int { return cmp.Compare(t.offer, at) }
	from, _ := slices.BinarySearchFunc(p.bids, at, by)
	to, _ := slices.BinarySearchFunc(p.bids, at+1, by)
	return p.bids[from:to]
}

// pick marks the bids for some offers that win: those of late jobs first, as far as their budget goes, the rest for the largest sum. It
// sells nothing (settler).
func (p *plan) pick(now quantity.Instant, offers []agents.Offer) {
	n := len(offers)
	p.tables = slices.Grow(p.tables[:0], n)[:n]
	for i := range p.tables {
		p.tables[i] = p.tables[i][:0]
	}
	p.number()
	for i := range p.bids {
		t := &p.bids[i]
		t.row = int32(len(p.tables[t.offer]))
		start, end := t.ticks(now, p.est.Horizon())
		p.tables[t.offer] = append(p.tables[t.offer], clearing.Bid{Start: start, End: end, Weight: t.weight, Job: t.number, ID: t.row,
			Work: t.work})
	}
	fixed := p.lateBids(now, offers)
	clearAround := p.pickOne
	if n > 1 {
		clearAround = p.pickJointly
	}
	clearAround(fixed)
	if more := p.idle(now, n); len(more) > 0 {
		clearAround(append(fixed, more...))
	}
	if n > 1 {
		p.stats.Regret += p.joint.Regret()
		p.stats.Value += p.joint.Value
		p.stats.Bound += p.joint.Bound
	}
	p.charge(now)
}

// number gives the jobs of the bids dense numbers, and their work: two bids of one job are of one work if they share
// a unit, or if the job may run no second subjob.
func (p *plan) number() {
	if len(p.bids) == 0 {
		return
	}
	order := p.order[:0]
	for i := range p.bids {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(i, k int32) int {
		a, b := &p.bids[i], &p.bids[k]
		return cmp.Or(index.ByName(a.Job, b.Job), cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(i, k))
	})
	number, work, reach := int32(-1), int32(0), int64(0)
	for k, i := range order {
		t := &p.bids[i]
		if k == 0 || p.bids[order[k-1]].Job != t.Job {
			number, work, reach = number+1, 0, 0
		} else if t.Range.From >= reach && !p.cfg.Exclusive && t.Job.Busy()+1 < t.Job.Parallelism() {
			work++
		}
		reach = max(reach, t.Range.To)
		t.number, t.work = number, work
	}
	p.order = order
}

// lateBids are of the late jobs' bids those that go first whatever others are worth (adr 0035), in turn: of each the one that
// begins first, the best of them, as far as the budget goes. What is sold ahead may be withdrawn, so a better piece that begins later is no
// service.
func (p *plan) lateBids(now quantity.Instant, offers []agents.Offer) []int32 {
	p.fixed = p.fixed[:0]
	if p.late.Credit() <= 0 {
		return nil
	}
	sold := p.cfg.soldUntil(now)
	for i := range p.bids {
		if t := &p.bids[i]; t.Start <= sold && t.Job.IsLate(now) {
			p.fixed = append(p.fixed, int32(i))
		}
	}
	if len(p.fixed) == 0 {
		return nil
	}
	slices.SortFunc(p.fixed, func(i, k int32) int {
		a, b := &p.bids[i], &p.bids[k]
		return cmp.Or(lateness.ByTurn(a.Job, b.Job), cmp.Compare(a.Start, b.Start), cmp.Compare(b.weight, a.weight), cmp.Compare(i, k))
	})
	// One for each job.
	p.fixed = slices.CompactFunc(p.fixed, func(i, k int32) bool { return p.bids[i].Job == p.bids[k].Job })
	n := 0
	p.late.Grants(now, len(p.fixed), func(i int) (*index.Job, int64) {
		t := &p.bids[p.fixed[i]]
		return t.Job, t.cost(offers[t.offer].Slice.Class())
	}, func(i int) {
		p.bids[p.fixed[i]].late = true
		p.fixed[n] = p.fixed[i]
		n++
	})
	p.fixed = p.fixed[:n]
	return p.fixed
}

// idle are the best bids that begin soon of windows of which nothing would be sold now, because what is planned there
// begins later: a window that somebody can use now is not kept for later, or it might be for ever.
func (p *plan) idle(now quantity.Instant, offers int) []int32 {
	sold := p.cfg.soldUntil(now)
	best, used := p.soonest[:0], p.used[:0]
	for range offers {
		best, used = append(best, -1), append(used, false)
	}
	for i := range p.bids {
		t := &p.bids[i]
		if t.Start > sold {
			continue
		}
		used[t.offer] = used[t.offer] || t.won
		if b := best[t.offer]; t.weight > 0 && (b < 0 || t.weight > p.bids[b].weight) {
			best[t.offer] = int32(i)
		}
	}
	p.soonest, p.used = best, used
	n := 0
	for at, i := range best {
		if i >= 0 && !used[at] {
			best[n] = i
			n++
		}
	}
	return best[:n]
}

// pickOne clears one window around what is fixed.
func (p *plan) pickOne(fixed []int32) {
	p.first = p.first[:0]
	for _, i := range fixed {
		p.first = append(p.first, p.bids[i].row)
	}
	if p.cfg.Exclusive {
		p.won = p.clearer.Exclusive(p.tables[0], p.first).Won
	} else {
		p.won, _, _ = p.clearer.Around(p.tables[0], p.first)
	}
	for i := range p.bids {
		p.bids[i].won = false
	}
	for _, i := range p.won {
		p.bids[i].won = true // of one window the bids are in the order of its table
	}
}

// pickJointly clears several windows together.
func (p *plan) pickJointly(fixed []int32) {
	var list []clearing.At
	for _, i := range fixed {
		list = append(list, clearing.At{Window: p.bids[i].offer, Bid: p.bids[i].row})
	}
	p.joint = p.clearer.Joint(p.tables, list)
	for i := range p.bids {
		t := &p.bids[i]
		t.won = slices.Contains(p.joint.Won[t.offer], t.row)
	}
}

// charge says what each winner pays: of one window, where prices are VCG's, those that won in it. A job served first because it is late did
// not win by its bid, and pays nothing.
func (p *plan) charge(now quantity.Instant) {
	switch p.cfg.Payment {
	case FirstPrice:
		for i := range p.bids {
			if t := &p.bids[i]; t.won && !t.late {
				t.price = p.offered(now, t)
			}
		}
	case Free:
	case VCG:
		for k, price := range p.clearer.Prices(p.tables[0], p.won) {
			t := &p.bids[p.won[k]]
			t.price = price
			if p.cfg.Weights.Rates() {
				t.price = quantity.MulDiv(p.offered(now, t), price, max(1, t.weight))
			}
		}
	}
}

// offered is what a bid offers to pay. Where weights are rates it is the score, so that a credit is a millisecond at a score of 1 there
// too.
func (p *plan) offered(now quantity.Instant, t *bid) int64 {
	if p.cfg.Weights.Rates() {
		return scaled(t.total, p.purses.fullness(now, t.Job))
	}
	return t.weight
}

// price of a bid that has won, in credits: never more than its queue can pay.
func (p *plan) price(now quantity.Instant, t *bid) int64 {
	if t.price == 0 {
		return 0
	}
	credits := t.price / score.One
	if !p.cfg.PerTime || p.cfg.Weights.Rates() { // weights have no time in them, and who takes a window for longer pays for longer
		credits = quantity.MulDiv(t.price, min(t.End.Sub(t.Start), PurseTime).Milliseconds(), score.One)
	}
	purse, _ := p.purses.seller.Purse(now, t.Job)
	return min(credits, purse)
}

// winnersOf are the bids for one window that are sold or planned.
func (p *plan) winnersOf(bids []bid) []*bid {
	p.winners = p.winners[:0]
	for i := range bids {
		if t := &bids[i]; t.won {
			p.winners = append(p.winners, t)
		}
	}
	return p.winners
}
