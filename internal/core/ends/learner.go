package ends

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Learner knows how long gaps last, how far claimed ends are kept, and what it costs jobs when one comes unforeseen.
type Learner struct {
	// gaps are curves of lengths, words those of the share of announced time that came true.
	gaps, words book
	// known guards predictions where nothing is claimed, claimed those where something is.
	known, claimed Guard
	tolls          tolls
	stats          Stats
	// version counts lessons: at one instant, the same version gives the same prediction.
	version uint64
}

// Stats count how predictions have come out.
type Stats struct {
	// Gaps that were seen from their begin to their end.
	Gaps int64
	// Kept are subjobs that were planned to end within their bet, Beyond those whose least useful piece was longer.
	Kept, Beyond Count
	// Failed are the bets of both that failed.
	Failed int64
}

// Count of subjobs that have ended, and of those among them that the end of their gap cut short.
type Count struct{ N, Cut int64 }

// New begins without knowledge, for a theta in parts per million.
func New(theta int64) *Learner {
	return &Learner{gaps: newBook(), words: newBook(), version: 1, known: NewGuard(theta), claimed: NewGuard(theta), tolls: newTolls()}
}

// Stats of what was predicted since it began.
func (l *Learner) Stats() Stats { return l.stats }

// Look records who holds a slice of a class now, and who will: stays in order of their start, those that repeat by their next occurrence.
// Looks are in order of time, one whenever that has changed.
func (l *Learner) Look(now quantity.Instant, g *Gap, class string, stays []Stay) {
	l.version++
	var present, next *Stay
	for i := range stays {
		switch s := &stays[i]; {
		case s.End <= now:
		case s.Start > now:
			if next == nil && !s.Calendar {
				next = s
			}
		case present == nil:
			present = s
		}
	}
	gone := present == nil && g.foretold <= now // it came and went since the last look
	if g.seen && !g.taken && (present != nil || gone) {
		if gone {
			l.end(g, g.foretold, false)
		} else {
			l.end(g, max(g.since, present.Start), present.Calendar)
		}
		g.taken, g.words = true, g.words[:0]
	}
	g.foretold = quantity.Never
	if present != nil {
		g.seen, g.taken, g.source = true, true, present.Source
		return
	}
	if !g.seen || g.taken {
		g.whole = g.seen
		g.seen, g.taken, g.since = true, false, now
		g.keys = KeysOf(class, g.source)
		if g.whole {
			l.gaps.open(&g.keys, now)
		}
	}
	if next == nil {
		return
	}
	g.foretold = next.Start
	if g.claimed(next.Start) == nil { // withdrawn words count all the same when the gap is over
		g.words = append(g.words, word{now, next.Start, KeysOf(distance(next.Start.Sub(now)), next.Source)})
		if len(g.words) > mostWords {
			g.words = append(g.words[:0], g.words[1:]...)
		}
	}
}

// Remove ends what is seen of a slice that is there no more, whose gap ended as it was foretold by now, or else was cut off from sight.
func (l *Learner) Remove(now quantity.Instant, g *Gap) {
	l.version++
	if g.seen && !g.taken {
		l.end(g, min(now, g.foretold), g.foretold > now)
	}
	*g = Gap{}
}

// end records that a gap is over; cut: not by those whose arrivals are learned.
func (l *Learner) end(g *Gap, at quantity.Instant, cut bool) {
	if g.whole {
		l.stats.Gaps++
		l.gaps.shut(&g.keys, g.since, at.Sub(g.since), cut)
	}
	for i := range g.words {
		w := &g.words[i]
		l.words.shut(&w.keys, w.at, w.share(at), cut)
	}
}

// Safe is what a subjob that begins at an instant is sold on: until when the gap is likely to last.
func (l *Learner) Safe(from quantity.Instant, g *Gap) Bet {
	if g.said.version != l.version || g.said.from != from {
		g.said = said{l.version, from, l.predict(from, g)}
	}
	return g.said.bet
}

func (l *Learner) predict(from quantity.Instant, g *Gap) Bet {
	if !g.seen || g.taken || from < g.since {
		return Bet{}
	}
	if g.foretold == quantity.Never {
		left, ok := l.gaps.residual(&g.keys, from, from.Sub(g.since), l.known.At())
		if !ok || left == None {
			return Bet{}
		}
		return Bet{Until: from.Add(left)}
	}
	w := g.claimed(g.foretold)
	if w == nil || from < w.at {
		return Bet{}
	}
	left, ok := l.words.residual(&w.keys, from, w.share(from), l.claimed.At())
	if !ok || left == None {
		return Bet{}
	}
	return Bet{Until: from.Add(time.Duration(quantity.MulDiv(int64(left), int64(w.until.Sub(w.at)), one))), Claimed: true}
}

// Ended records the end of a subjob and of its bet. The bet failed if the gap ended before it and before the subjob. A subjob whose
// shortest useful piece is longer than its bet was promised nothing; its bet counts all the same, or a guard whose level has reached 0,
// where every bet is too short, would stay there.
func (l *Learner) Ended(b Bet, o Outcome) {
	if b.None() {
		return
	}
	l.version++
	failed := o.Cut && o.Ended < b.Until
	at := &l.stats.Kept
	if o.Planned > b.Until {
		at = &l.stats.Beyond
	}
	at.N++
	if o.Cut {
		at.Cut++
	}
	if failed {
		l.stats.Failed++
	}
	if b.Claimed {
		l.claimed.Saw(failed)
	} else {
		l.known.Saw(failed)
	}
}

// Paid records that a subjob was cut short after worked, of which saved was kept.
func (l *Learner) Paid(kind Kind, worked, saved time.Duration) {
	t := &l.tolls
	o := t.of[kind]
	if o == nil {
		o = &toll{}
		t.of[kind] = o
	}
	o.worked, o.saved = o.worked+max(0, worked), o.saved+min(max(0, saved), max(0, worked))
	if o.seen++; o.seen == halved {
		o.worked, o.saved, o.seen = o.worked/2, o.saved/2, halved/2
	}
	if at := slices.Index(t.paid, kind); at >= 0 {
		t.paid = slices.Delete(t.paid, at, at+1)
	}
	if t.paid = append(t.paid, kind); len(t.paid) > MostKinds {
		delete(t.of, t.paid[0])
		t.paid = slices.Delete(t.paid, 0, 1)
	}
}

// Loses reports whether most of the work of a kind's subjobs is lost when they are cut short, as far as is known. Those whose programs save
// on their way, heed a warning, or work on independent units may as well go on as long as they like.
func (l *Learner) Loses(kind Kind) bool {
	o := l.tolls.of[kind]
	return o == nil || o.saved < o.worked/2
}
