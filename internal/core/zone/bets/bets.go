// Package bets notes what subjobs are sold on: until when their gap was predicted to last. A piece has one bet, from its ask to its end,
// and what became of it teaches how sure a prediction has to be. What nodes show of others on their slices is what the ends of gaps are
// learned from: an owner's reservations, processes that are not ours, what a provider takes back. All of it is soft: a claim of before the
// zone came up has no bet, and teaches nothing.
package bets

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

// Bets learn from those on all slices; nil: nothing is learned, and nothing is bet.
type Bets struct{ learner *ends.Learner }

// New allows such a share of predictions, in parts per million, to fail; 0: nil.
func New(share int64) *Bets {
	if share <= 0 {
		return nil
	}
	return &Bets{ends.New(share)}
}

// Book has the bets on one slice, and the knowledge of the time that others leave on it.
type Book struct {
	gap  ends.Gap
	list []bet
}

// bet is on an ask, and, under a token, on what it was sold as.
type bet struct {
	ask   *home.Ask
	token job.Token
	on    ends.Bet
	// cut: the gap is over, or is to be, before it.
	cut bool
}

// Sale is time that was sold on the slice.
type Sale struct {
	Token      job.Token
	Start, End quantity.Instant
}

// Look records a new view of a slice, on which this was sold.
func (b *Bets) Look(now quantity.Instant, k *Book, v *protocol.SliceView, sold func(yield func(Sale) bool)) {
	if b == nil {
		return
	}
	var stays []ends.Stay
	for i := range v.Reserved {
		r := v.Reserved[i]
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
	b.learner.Look(now, &k.gap, v.Slice.Profile, stays)
	for x := range sold {
		if w := k.of(x.Token); w != nil && slices.ContainsFunc(stays, func(y ends.Stay) bool {
			return !y.Calendar && y.Start < x.End && x.Start < y.End
		}) {
			w.cut = true
		}
	}
}

// Remove ends what is seen of a slice that is there no more. What was sold there keeps its bets until it is over.
func (b *Bets) Remove(now quantity.Instant, k *Book) {
	if b != nil {
		b.learner.Remove(now, &k.gap)
	}
}

// comes reports whether a reservation is of a kind that comes as its owner likes.
func comes(kind protocol.ReservationKind) bool {
	return kind == protocol.ForOwner || kind == protocol.ForForeign || kind == protocol.ForReclaim
}

// Safe is until when the gap is likely to last in which something begins at an instant.
func (b *Bets) Safe(k *Book, from quantity.Instant) quantity.Instant {
	if b != nil {
		if on := b.learner.Safe(from, &k.gap); !on.None() {
			return on.Until
		}
	}
	return quantity.Never
}

// Ask notes what a piece is asked for on; nothing is bet on a job that loses nothing.
func (b *Bets) Ask(k *Book, a *home.Ask) {
	if b == nil || !a.Job.Spec.Divisible() {
		return
	}
	w := bet{ask: a}
	if b.Loses(a.Job) {
		w.on = b.learner.Safe(a.Start, &k.gap)
	}
	k.list = append(k.list, w)
}

// Won says under which token an ask was granted.
func (k *Book) Won(a *home.Ask, t job.Token) {
	if i := slices.IndexFunc(k.list, func(w bet) bool { return w.ask == a }); i >= 0 {
		k.list[i].ask, k.list[i].token = nil, t
	}
}

// Forgo notes that an ask came to nothing.
func (k *Book) Forgo(a *home.Ask) {
	k.list = slices.DeleteFunc(k.list, func(w bet) bool { return w.ask == a })
}

// Drop says that what was sold under a token is over.
func (k *Book) Drop(t job.Token) {
	k.list = slices.DeleteFunc(k.list, func(w bet) bool { return w.ask == nil && w.token == t })
}

// Empty says that nothing is bet.
func (k *Book) Empty() bool { return len(k.list) == 0 }

// of is what a claim was sold on; nil if that is not known.
func (k *Book) of(t job.Token) *bet {
	if i := slices.IndexFunc(k.list, func(w bet) bool { return w.ask == nil && w.token == t }); i >= 0 {
		return &k.list[i]
	}
	return nil
}

// Until is by when a claim is to be over, and its work saved: what it was sold on; Never if nothing was bet.
func (k *Book) Until(t job.Token) quantity.Instant {
	if w := k.of(t); w != nil && !w.on.None() {
		return w.on.Until
	}
	return quantity.Never
}

// Settle records the end of a subjob: of the bet that it was sold on, and of its work if its gap ended before it.
func (b *Bets) Settle(k *Book, j *home.Job, c *protocol.Claim, r *job.Result, done job.Range) {
	w := k.of(c.Token)
	if w == nil || r.Start == 0 {
		return
	}
	cut := w.cut && done != c.Range // else it was over in time, or nobody took it away
	b.learner.Ended(w.on, ends.Outcome{Planned: c.End, Ended: r.End, Cut: cut})
	if v := j.View(); cut && !v.Measures() {
		b.learner.Paid(kindOf(j), max(0, r.Ran()), v.RunTime(done.Len(), c.Speed))
	}
}

// Loses reports whether most of the work of a job's subjobs is lost where their gap ends unforeseen.
func (b *Bets) Loses(j *home.Job) bool { return b != nil && b.learner.Loses(kindOf(j)) }

func kindOf(j *home.Job) ends.Kind {
	return ends.Kind{Queue: j.Queue().Name, Template: j.Spec.Template, Kind: j.Spec.Kind}
}

// Stats counts how predictions have come out.
func (b *Bets) Stats() ends.Stats {
	if b == nil {
		return ends.Stats{}
	}
	return b.learner.Stats()
}
