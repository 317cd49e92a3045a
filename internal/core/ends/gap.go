package ends

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Stay is time of a slice that somebody else holds or means to.
type Stay struct {
	Start, End quantity.Instant
	Source     string
	// Calendar: it comes by the clock (serving hours, maintenance), and is known as long as it stands.
	Calendar bool
}

// Gap is the time of one slice as far as it is known: between two stays, or in one. The zero value is a slice never looked at.
type Gap struct {
	// seen: it was looked at; taken: somebody else holds it.
	seen, taken bool
	// since when it lasts, if it is not taken; whole: its begin was seen, so that its length will be known.
	since quantity.Instant
	whole bool
	// source of the latest stay, and the kinds that the gap behind it belongs to.
	source string
	keys   Keys
	// foretold is when the next stay begins as things stand, Never if none does; it means nothing of one that is taken.
	foretold quantity.Instant
	// words are the ends that were claimed of it, the latest behind.
	words []word
	// said is the latest prediction. The market asks for it once for every job.
	said said
}

// said is a prediction that was made at an instant, under a version of what was learned.
type said struct {
	version uint64
	from    quantity.Instant
	bet     Bet
}

// word is one claim: made at an instant, that the gap lasts until another.
type word struct {
	at, until quantity.Instant
	keys      Keys
}

// mostWords are remembered of one gap, the latest.
const mostWords = 8

// share is how much of a claimed time came true, in parts per million; that of a gap that outlived it is bounded.
func (w *word) share(end quantity.Instant) time.Duration {
	return time.Duration(min(quantity.MulDiv(int64(max(0, end.Sub(w.at))), one, int64(w.until.Sub(w.at))), mostShare))
}

// one is a share of 1, mostShare the largest that is represented.
const one, mostShare = 1_000_000, 8_000_000

// claimed is the latest word if it claims this end; else nil.
func (g *Gap) claimed(end quantity.Instant) *word {
	if n := len(g.words); n > 0 && g.words[n-1].until == end {
		return &g.words[n-1]
	}
	return nil
}

// distance is how far ahead a word is, by powers of two, for the kinds of words: near ones are kept better.
func distance(d time.Duration) string {
	n := 0
	for d >>= 30; d > 0; d >>= 1 { // from about a second on
		n++
	}
	return string(rune('a' + n))
}
