package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/clearing"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// scratch is room for what is made anew for every round or window, so that a pass allocates nothing. It means nothing between
// calls.
type scratch struct {
	// pick and next are the best candidate of those looked at, and the one that is compared with it.
	pick, next candidate
	// pair is what two jobs are compared by.
	pair [2]policy.Candidate
	// moved are jobs whose places in the rankings are to be others, held those that are held back until it is their turn.
	moved []*Job
	held  []candidate
	// heads are the first of each queue who were not invited, where bids go by the index.
	heads  []head
	offers []offer
	// invited are asked for a window, variants what one of them proposes; asks are the quotes of all that do, for all windows that are
	// cleared together, fleeting those of them that are not kept, and bids what may win of them and of what agents say, by window, job
	// and variant.
	invited                []*Job
	variants               []protocol.Variant
	asks                   []ask
	fleeting               []*quote
	pieces                 []piece
	bids                   []bid
	winners                []*bid
	order, starving, first []int32
	// soonest and used are the best bid of a window that begins soon, and whether anything is sold there now.
	soonest []int32
	used    []bool
	tables  [][]clearing.Bid
	clearer clearing.Clearer
	// won are the winners of the latest clearing of one window, joint the latest plan for several.
	won   []int32
	joint clearing.Plan
}

// offer is a window that is offered, in a round. Of one that has been offered before, only jobs that changed since are asked.
type offer struct {
	slice  *Slice
	window uint64
	full   bool
}

// round is announced to agents and waits for their answers.
type round struct {
	id     uint64
	offers []offer
	closes quantity.Instant
	asked  []caller
	// waiting are the prompt agents that have not answered.
	waiting int
	// generation of the floor when it was opened: who has come since was not asked.
	generation uint64
	// most variants of an answer are looked at for each window.
	most int
	// signals: it collects interest. turn is of the one window of a round in which an agent is asked for its piece. Neither: bids.
	signals bool
	turn    *turn
}

// caller is an external job that was asked, with its answer.
type caller struct {
	job      *Job
	session  uint64
	asked    quantity.Instant
	prompt   bool
	answered bool
	// said: what it answered came in a message; otherwise it has gone.
	said bool
	// won: something of what it answered is sold or planned.
	won      bool
	variants []protocol.Variant
	// notices are what it is told of its variants.
	notices []protocol.Notice
}

// of are the caller's variants for a window, once they are sorted.
func (c *caller) of(window uint64) []protocol.Variant {
	from, _ := slices.BinarySearchFunc(c.variants, window, func(v protocol.Variant, id uint64) int { return cmp.Compare(v.Window, id) })
	to := from
	for to < len(c.variants) && c.variants[to].Window == window {
		to++
	}
	return c.variants[from:to]
}

// negotiate announces the windows in turn, clears the rounds that nobody outside has to be waited for, and those that are
// complete or over. It returns when the next one closes.
func (f *Floor) negotiate(now quantity.Instant, waiting int, news bool, out *protocol.Out) quantity.Instant {
	uncontended := f.Uncontended(waiting)
	for len(f.rounds) > 0 {
		i := slices.IndexFunc(f.rounds, func(r *round) bool { return r.waiting == 0 || r.closes <= now })
		if i < 0 {
			break
		}
		r := f.rounds[i]
		f.rounds = slices.Delete(f.rounds, i, i+1)
		f.conclude(now, r, uncontended, out)
	}
	offers, wake := f.inTurn(now, uncontended, news, f.offers[:0])
	offers = f.repack(now, offers, out)
	if asked := f.callees(now, offers); len(asked) > 0 {
		offers = f.announceTo(now, offers, asked, out)
	}
	f.clear(now, offers, nil, uncontended, out)
	clear(offers)
	f.offers = offers[:0]
	for _, r := range f.rounds {
		wake = min(wake, r.closes)
	}
	return wake
}

// inTurn lists the windows that have begun and are to be offered: where there are as many as jobs to fill them those of fast
// slices first, otherwise those of small ones. Those of slices that have had their rounds in this instant wait for the next
// one, which is returned.
func (f *Floor) inTurn(now quantity.Instant, uncontended, news bool, offers []offer) (_ []offer, again quantity.Instant) {
	again = quantity.Never
	add := func(speed int64) {
		for i := f.turn.Next(0); i >= 0; i = f.turn.Next(i + 1) {
			s := f.slices[i]
			if speed != anySpeed && s.class.Speed != speed {
				continue
			}
			f.turn.Drop(i)
			if s.dirty {
				continue // a round that has just closed sold some of it: what is left is offered in the next step
			}
			for k := range s.windows {
				w := &s.windows[k]
				full := !w.offered || w.planned != 0 && w.planned <= now
				if w.start > now || w.round != 0 || !full && !news || f.generation == 0 {
					continue
				}
				if full && !s.another(now, f.cfg.Market.Rounds) {
					again = now.Add(tick)
					f.InvalidateSlice(s)
					break
				}
				offers = append(offers, offer{s, w.id, full})
			}
		}
	}
	if uncontended {
		for _, speed := range f.speeds {
			add(speed)
		}
	}
	add(anySpeed)
	return offers, again
}

// another counts a round of the slice in this instant, unless it has had as many as there may be.
func (s *Slice) another(now quantity.Instant, most int) bool {
	if s.instant != now {
		s.instant, s.rounds = now, 0
	}
	s.rounds++
	return s.rounds <= most
}

// find is the window that is offered as it is now; nil if it is gone or was cut.
func (o *offer) find() *window {
	for i := range o.slice.windows {
		if w := &o.slice.windows[i]; w.id == o.window {
			return w
		}
	}
	return nil
}

// conclude clears a round that has waited for agents and tells each what became of its variants.
func (f *Floor) conclude(now quantity.Instant, r *round, uncontended bool, out *protocol.Out) {
	late := r.generation != f.generation
	for i := range r.offers {
		if w := r.offers[i].find(); w != nil {
			w.round = 0
		}
	}
	f.takeIn(now, r)
	f.clear(now, r.offers, r, uncontended, out)
	for i := range r.offers {
		if w := r.offers[i].find(); w != nil && late { // what is left is for those too that came while it was open
			w.offered = false
			f.turn.Put(r.offers[i].slice.at)
		}
	}
	for i := range r.asked {
		c := &r.asked[i]
		if c.won {
			c.job.agent.unsuccessful = 0
		} else {
			f.callAgain(now, c.job)
		}
		f.tellNotices(r, c, out)
	}
}

// takeIn puts the answers to a round that is over in order, and counts who did not answer.
func (f *Floor) takeIn(now quantity.Instant, r *round) {
	windows := make([]uint64, len(r.offers))
	for i := range r.offers {
		windows[i] = r.offers[i].window
	}
	slices.Sort(windows)
	for i := range r.asked {
		c := &r.asked[i]
		if !c.answered {
			c.job.agent.missed++
			f.stats.Missed++
			c.job.counts.add(Unanswered, now)
		}
		// The order in which an agent writes its variants is nobody's advantage.
		c.variants = slices.Clone(c.variants)
		slices.SortFunc(c.variants, func(a, b protocol.Variant) int {
			return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.ID, b.ID))
		})
		for k := range c.variants {
			if _, announced := slices.BinarySearch(windows, c.variants[k].Window); !announced {
				f.deny(c, &c.variants[k], "no such window is in this round")
			}
		}
	}
}

// tellNotices tells an agent what became of its answer to a round.
func (f *Floor) tellNotices(r *round, c *caller, out *protocol.Out) {
	if len(c.notices) > 0 {
		slices.SortStableFunc(c.notices, func(a, b protocol.Notice) int { return cmp.Compare(a.Variant, b.Variant) })
		f.tell(c, protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: r.id, Notices: c.notices}}, out)
	}
}

// horizonOf is how soon a subjob must begin to be sold now.
func (f *Floor) horizonOf(now quantity.Instant) quantity.Instant {
	if f.cfg.Market.Repack == Rolling {
		return now.Add(f.cfg.Market.Freeze)
	}
	return quantity.Never
}

// repack withdraws what was sold ahead on slices where a subjob has ended before its time, so that the window that opened
// and what was sold behind it are cleared as one; beyond the freeze, and never what has begun: the node gives up a lease only
// if it has not. Windows whose slice is about to grow are not cleared before that. It returns the others.
func (f *Floor) repack(now quantity.Instant, offers []offer, out *protocol.Out) []offer {
	if f.cfg.Market.Repack != Withdraw {
		return offers
	}
	return slices.DeleteFunc(offers, func(o offer) bool {
		if !o.full || !o.slice.early {
			return false
		}
		o.slice.early = false
		n := f.sale.Withdraw(now, now.Add(f.cfg.Market.Freeze), o.slice, out)
		f.stats.Withdrawn += int64(n)
		return n > 0
	})
}
