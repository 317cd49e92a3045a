package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// settleLot asks for what was won of a lot, as far as it is sold now, and says what became of the rest.
func (z *Zone) settleLot(now quantity.Instant, l *lot, w *window, at int32, id uint64, out *protocol.Out) {
	z.stats.Rounds++
	sold := z.horizonOf(now)
	length := w.length(now)
	from, _ := slices.BinarySearchFunc(z.tenders, at, func(t tender, at int32) int { return cmp.Compare(t.lot, at) })
	to, _ := slices.BinarySearchFunc(z.tenders, at+1, func(t tender, at int32) int { return cmp.Compare(t.lot, at) })
	tenders := z.tenders[from:to]
	refused := false
	for i := range tenders {
		t := &tenders[i]
		// What was sold since in another window is not sold again.
		if t.won && z.refuses(now, t) {
			t.won, refused = false, true
		}
		t.awarded = t.won && t.Start <= sold
		if l.full && t.awarded && t.job.indexed {
			z.count(t.job) // the winner has not lost this round
		}
	}
	if l.full {
		z.remember(l.slice.class.at, length, now)
	}
	w.offered, w.won = true, false
	if l.full {
		w.planned = 0 // otherwise what was planned with everybody asked stays so
	}
	// However soon a plan is to be looked at again: not sooner than an agent has time to answer, or one could be asked for ever.
	soonest := now.Add(z.cfg.Market.Close)
	for i := range tenders {
		t := &tenders[i]
		switch {
		case t.awarded && !z.refuses(now, t):
			if l.full && t.job.indexed {
				t.job.counted = z.tally.end()
			}
			z.award(now, t, l, w, id, out)
			w.offered, w.won = false, true // what is left of it is announced again
		case t.won && !t.awarded:
			z.stats.Planned++
			if again := max(soonest, t.Start.Add(-z.cfg.Market.Freeze)); w.planned == 0 || again < w.planned {
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
		z.arm(l.slice, now)
	}
	winners := z.winnersOf(tenders)
	z.loses(now, l, tenders, winners)
	tellAll(tenders, winners)
}

// refuses says whether a job can no longer be sold what it won: in another window of the round some of it was, or as many
// subjobs as may run at once, or as many slices as its queue may hold.
func (z *Zone) refuses(now quantity.Instant, t *tender) bool {
	s := t.job
	return z.deafness(now, s) != interested || s.asked.Overlaps(t.Range) || s.Claimed.Overlaps(t.Range) || len(s.Claims)+s.asking >= s.Spec.Parallelism
}

// award asks the node for the place of a tender that has won.
func (z *Zone) award(now quantity.Instant, t *tender, l *lot, w *window, id uint64, out *protocol.Out) {
	z.stats.Awards++
	z.ask(now, t.job, l.slice, nil, piece{
		Piece: atomizer.Piece{Range: t.Range, Run: t.Run, Wall: t.Wall, Length: t.end.Sub(t.Start), Demand: t.Demand},
		start: t.Start, end: t.end, speed: t.speed, window: w.id, round: id, option: t.Option,
		bid: &protocol.Bid{
			Score: t.Score, Calibrated: t.calibrated, Weight: t.weight, Left: t.left, Urgency: t.urgency, Price: z.price(now, t), Option: t.Option,
			Since: max(t.job.Submitted, t.job.Served),
		},
	}, 0, out)
}

// starvers are the tenders of the jobs that have waited longer than T_starve which begin first, the best of them, the longest
// waiting job first: they go first whatever others are worth (trap T3; docs/adr). What is sold ahead may be withdrawn, so a
// better piece that begins later is no service.
func (z *Zone) starvers(now quantity.Instant) []int32 {
	z.starving = z.starving[:0]
	if z.cfg.Market.Starve < 0 {
		return nil
	}
	sold := z.horizonOf(now)
	for i := range z.tenders {
		if t := &z.tenders[i]; t.Start <= sold && t.job.waited(now) > z.cfg.Market.Starve {
			z.starving = append(z.starving, int32(i))
		}
	}
	slices.SortFunc(z.starving, func(i, j int32) int {
		a, b := &z.tenders[i], &z.tenders[j]
		return cmp.Or(cmp.Compare(b.job.waited(now), a.job.waited(now)), cmp.Compare(a.job.Job, b.job.Job), cmp.Compare(a.Start, b.Start), cmp.Compare(b.weight, a.weight), cmp.Compare(i, j))
	})
	// One for each job: it is served, and waits anew.
	z.starving = slices.CompactFunc(z.starving, func(i, j int32) bool { return z.tenders[i].job == z.tenders[j].job })
	for _, i := range z.starving {
		z.tenders[i].free = true
	}
	return z.starving
}

// winnersOf are the tenders for one window that are sold or planned.
func (z *Zone) winnersOf(tenders []tender) []*tender {
	winners := z.winners[:0]
	for i := range tenders {
		if t := &tenders[i]; t.won {
			winners = append(winners, t)
		}
	}
	z.winners = winners
	return winners
}

// tellAll notes for the agents what became of the tenders for one window.
func tellAll(tenders []tender, winners []*tender) {
	for i := range tenders {
		t := &tenders[i]
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
			for _, o := range winners {
				if o.Start < t.end && t.Start < o.end {
					n.Clearing, n.Text = max(n.Clearing, o.total), "others in its time are worth more, or have waited too long"
					if o.job == t.job {
						n.Text = "another variant of the same job was chosen"
						break
					}
				}
			}
		}
		t.caller.notices = append(t.caller.notices, n)
	}
}
