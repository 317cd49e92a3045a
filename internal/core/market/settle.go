package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// settle asks for what was won of a window, as far as it is sold now, and says what became of the rest.
func (f *Floor) settle(now quantity.Instant, o *offer, w *window, at int32, id uint64, out *protocol.Out) {
	f.stats.Rounds++
	sold := f.horizonOf(now)
	length := w.length(now)
	from, _ := slices.BinarySearchFunc(f.bids, at, func(t bid, at int32) int { return cmp.Compare(t.offer, at) })
	to, _ := slices.BinarySearchFunc(f.bids, at+1, func(t bid, at int32) int { return cmp.Compare(t.offer, at) })
	bids := f.bids[from:to]
	refused := false
	for i := range bids {
		t := &bids[i]
		// What was sold since in another window is not sold again.
		if t.won && f.refuses(now, t) {
			t.won, refused = false, true
		}
		t.awarded = t.won && t.Start <= sold
		if o.full && t.awarded && t.job.indexed {
			f.count(t.job) // the winner has not lost this round
		}
	}
	if o.full {
		f.remember(o.slice.class.at, length, now)
	}
	w.offered, w.won = true, false
	if o.full {
		w.planned = 0 // otherwise what was planned with everybody asked stays so
	}
	// However soon a plan is to be looked at again: not sooner than an agent has time to answer, or one could be asked for ever.
	soonest := now.Add(f.cfg.Market.Close)
	for i := range bids {
		t := &bids[i]
		switch {
		case t.awarded && !f.refuses(now, t):
			if o.full && t.job.indexed {
				f.discount(t.job)
			}
			f.award(now, t, o, w, id, out)
			w.offered, w.won = false, true // what is left of it is announced again
		case t.won && !t.awarded:
			f.stats.Planned++
			if again := max(soonest, t.Start.Add(-f.cfg.Market.Freeze)); w.planned == 0 || again < w.planned {
				w.planned = again
			}
		default:
			refused = refused || t.won
			t.won = false
		}
	}
	if refused && !w.won { // others could use it
		w.planned = soonest
	}
	if w.planned != 0 {
		f.arm(o.slice, now)
	}
	winners := f.winnersOf(bids)
	f.loses(now, o, at, bids, winners)
	tellAll(bids, winners)
}

// refuses says whether a job can no longer be sold what it won: in another window of the round some of it was, or as many
// subjobs as may run at once, or as many slices as its queue may hold.
func (f *Floor) refuses(now quantity.Instant, t *bid) bool {
	j := t.job
	if j.Ineligible(now) != Eligible {
		return true
	}
	v := j.View()
	return v.Claimed.Overlaps(t.Range) || v.Running >= j.Spec().Parallelism
}

// award asks the node for the place of a bid that has won.
func (f *Floor) award(now quantity.Instant, t *bid, o *offer, w *window, id uint64, out *protocol.Out) {
	f.stats.Awards++
	late := int64(0)
	if t.free {
		late = t.cost(o.slice.class)
		f.budget.Spend(late)
	}
	f.sale.Ask(now, t.job, o.slice, Piece{
		Piece: atomizer.Piece{Range: t.Range, Run: t.Run, Wall: t.Wall, Length: t.end.Sub(t.Start), Demand: t.Demand},
		Start: t.Start, End: t.end, Speed: t.speed, Window: w.id, Round: id, Option: t.Option, Late: late,
		Bid: &protocol.Bid{
			Score: t.Score, Calibrated: t.calibrated, Weight: t.weight, Left: t.left, Urgency: t.urgency, Price: f.price(now, t),
			Option: t.Option,
			Since:  t.job.since(),
		},
	}, out)
}

// lateBids are of the late jobs' bids those that go first whatever others are worth (trap T3; adr 0035), in turn: of each the one that
// begins first, the best of them, as far as the budget goes. What is sold ahead may be withdrawn, so a better piece that begins later is
// no service.
func (f *Floor) lateBids(now quantity.Instant, offers []offer) []int32 {
	f.starving = f.starving[:0]
	credit := f.budget.Credit()
	if credit <= 0 {
		return nil
	}
	sold := f.horizonOf(now)
	for i := range f.bids {
		if t := &f.bids[i]; t.Start <= sold && t.job.isLate(now) {
			f.starving = append(f.starving, int32(i))
		}
	}
	if len(f.starving) == 0 {
		return nil
	}
	slices.SortFunc(f.starving, func(i, k int32) int {
		a, b := &f.bids[i], &f.bids[k]
		return cmp.Or(byTurn(a.job, b.job), cmp.Compare(a.Start, b.Start), cmp.Compare(b.weight, a.weight), cmp.Compare(i, k))
	})
	// One for each job.
	f.starving = slices.CompactFunc(f.starving, func(i, k int32) bool { return f.bids[i].job == f.bids[k].job })
	first, n := f.firstTurn(now), 0
	for _, i := range f.starving {
		t := &f.bids[i]
		if cost := t.cost(offers[t.offer].slice.class); entitled(t.job.turn(), first, credit, cost) {
			t.free = true
			f.starving[n], n, credit = i, n+1, credit-cost
		}
	}
	f.starving = f.starving[:n]
	return f.starving
}

// cost is what a bid for a slice of a class takes of the budget of the late.
func (t *bid) cost(c *Class) int64 { return c.cost(t.end.Sub(t.Start)) }

// winnersOf are the bids for one window that are sold or planned.
func (f *Floor) winnersOf(bids []bid) []*bid {
	winners := f.winners[:0]
	for i := range bids {
		if t := &bids[i]; t.won {
			winners = append(winners, t)
		}
	}
	f.winners = winners
	return winners
}

// tellAll notes for the agents what became of the bids for one window.
func tellAll(bids []bid, winners []*bid) {
	for i := range bids {
		t := &bids[i]
		if t.caller == nil {
			continue
		}
		t.caller.won = t.caller.won || t.won
		n := protocol.Notice{Window: t.Window, Variant: t.ID, Score: t.total, Range: t.Range}
		switch {
		case t.won && t.awarded:
			n.Kind, n.Text = protocol.Awarded, "its node is asked"
		case t.won:
			n.Kind, n.Text = protocol.Planned, "it is the best for its time, which is not for sale yet"
		default:
			n.Kind, n.Text = protocol.Lost, "its work is sold in another window of this round, or others will be worth more there"
			for _, other := range winners {
				if other.Start < t.end && t.Start < other.end {
					n.Clearing, n.Text = max(n.Clearing, other.total), "others in its time are worth more, or have waited too long"
					if other.job == t.job {
						n.Text = "another variant of the same job was chosen"
						break
					}
				}
			}
		}
		t.caller.notices = append(t.caller.notices, n)
	}
}
