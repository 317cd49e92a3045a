package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// What nodes show of others on their slices is what the zone learns the ends of gaps from: an owner's reservations, processes that are
// not ours, what a provider takes back. Subjobs are sold on that (market.Supply.Safe), and what became of them says how sure it has to be.

// watch takes in a new view of a slice.
func (z *Zone) watch(now quantity.Instant, s *slice) {
	if z.ends == nil {
		return
	}
	var stays []ends.Stay
	for i := range s.view.Reserved {
		r := s.view.Reserved[i]
		switch r.Kind {
		case protocol.ForLease, protocol.ForHold, protocol.ForRigid:
			continue
		default: // somebody else's
		}
		if r.Every != 0 {
			if o, hit := timeline.Overlap(&r, now, now+1); hit {
				r = o
			} else {
				continue
			}
		}
		stays = append(stays, ends.Stay{Start: r.Start, End: r.End, Source: r.Source, Calendar: !comes(r.Kind)})
	}
	slices.SortStableFunc(stays, func(a, b ends.Stay) int { return cmp.Compare(a.Start, b.Start) })
	z.ends.Look(now, &s.gap, s.view.Slice.Profile, stays)
	for i := range s.sold {
		x := &s.sold[i]
		if w := s.wagerOf(x.token); w != nil && slices.ContainsFunc(stays, func(y ends.Stay) bool {
			return !y.Calendar && y.Start < x.end && x.start < y.End
		}) {
			w.cut = true
		}
	}
}

// comes says whether a reservation is one of those that come as their owner likes.
func comes(kind protocol.ReservationKind) bool {
	return kind == protocol.ForOwner || kind == protocol.ForForeign || kind == protocol.ForReclaim
}

// Safe is until when the gap is likely to last in which something begins at an instant.
func (s *slice) Safe(from quantity.Instant) quantity.Instant {
	if s.ends == nil {
		return quantity.Never
	}
	if b := s.ends.Safe(from, &s.gap); !b.None() {
		return b.Until
	}
	return quantity.Never
}

// wager is what a piece was asked for on, and, under a token, sold on: until when the gap was predicted to last. Soft: a claim of before
// the zone came up has none, and teaches nothing.
type wager struct {
	ask   *home.Ask
	token job.Token
	bet   ends.Bet
	// cut: the gap is over, or is to be, before it.
	cut bool
}

// wager notes what a piece is asked for on; nothing is bet on a job that loses nothing.
func (z *Zone) wager(a *home.Ask) {
	if z.ends == nil || !a.Job.Spec.Divisible() {
		return
	}
	s, w := z.site(a.Slice), wager{ask: a}
	if z.loses(a.Job) {
		w.bet = z.ends.Safe(a.Start, &s.gap)
	}
	s.wagers = append(s.wagers, w)
}

// won says under which token an ask was granted.
func (z *Zone) won(a *home.Ask, t job.Token) {
	s := z.site(a.Slice)
	if i := slices.IndexFunc(s.wagers, func(w wager) bool { return w.ask == a }); i >= 0 {
		s.wagers[i].ask, s.wagers[i].token = nil, t
	}
}

// forgo forgets what an ask was on that came to nothing.
func (z *Zone) forgo(a *home.Ask) {
	s := z.site(a.Slice)
	s.wagers = slices.DeleteFunc(s.wagers, func(w wager) bool { return w.ask == a })
}

// wagerOf is what a claim was sold on; nil if that is not known.
func (s *slice) wagerOf(t job.Token) *wager {
	if i := slices.IndexFunc(s.wagers, func(w wager) bool { return w.ask == nil && w.token == t }); i >= 0 {
		return &s.wagers[i]
	}
	return nil
}

func (s *slice) dropWager(t job.Token) {
	s.wagers = slices.DeleteFunc(s.wagers, func(w wager) bool { return w.ask == nil && w.token == t })
}

// settleWager takes in what became of a subjob: of what it was sold on, and of its work if its gap was over before it.
func (z *Zone) settleWager(j *home.Job, c *protocol.Claim, r *job.Result, done job.Range) {
	w := z.site(c.Slice).wagerOf(c.Token)
	if w == nil || r.Start == 0 {
		return
	}
	cut := w.cut && done != c.Range // else it was over in time, or nobody took it away
	z.ends.Ended(w.bet, ends.Outcome{Planned: c.End, Ended: r.End, Cut: cut})
	if cut {
		v := j.View()
		z.ends.Paid(tollKind(j), max(0, r.Ran()), v.RunTime(done.Len(), c.Speed))
	}
}

// loses says whether most of what subjobs of a job work on is lost where their gap ends unforeseen.
func (z *Zone) loses(j *home.Job) bool { return z.ends != nil && z.ends.Loses(tollKind(j)) }

func tollKind(j *home.Job) ends.Kind {
	return ends.Kind{Queue: j.Queue().Name, Template: j.Spec.Template, Kind: j.Spec.Kind}
}

// Ends counts what has become of predictions of the ends of gaps.
func (z *Zone) Ends() ends.Stats {
	if z.ends == nil {
		return ends.Stats{}
	}
	return z.ends.Stats()
}
