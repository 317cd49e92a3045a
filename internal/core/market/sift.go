package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// Of all that is bid for one window little can win: a piece is beaten where one that is worth more lies within its time, since whatever
// holds the first would be worth more with the second. So only what is not beaten is cleared, and the sale is that of clearing
// everything: a piece that is in no best plan is in none of the others that clearing compares either. Of pieces that are worth the same
// the first by job and variant beats the others: of plans that are worth the same clearing takes what ends first, then what comes
// first in that order. What is fixed leaves room for both or for the second alone.
//
// That holds where plans are compared by their sum alone: not where one variant of a job excludes another (Exclusive, and several
// windows at once), nor where prices are made of what would win without the winner (VCG).

// ask is a quote for one of the windows that are cleared together.
type ask struct {
	quote *quote
	offer int32
	// best is its heaviest variant, with what that weighs and its score.
	best          int32
	weight, score int64
}

// piece is a variant of a quote that may win.
type piece struct {
	start, end, weight int64
	ask, term          int32
	// soon: it begins so soon that it could be sold now. fixed: its job has waited too long, and may go first.
	soon, fixed bool
}

// fits says whether a piece lies within the time of another and is worth as much at least. In the time of what could be sold now only
// such fits, since a window is not kept for later if somebody can use it now (idle).
func (x *piece) fits(y *piece) bool {
	return x.weight >= y.weight && x.start >= y.start && x.end <= y.end && (x.soon || !y.soon)
}

// compare orders pieces for one window by job and variant.
func (x *piece) compare(y *piece, asks []ask) int {
	if x.ask == y.ask {
		return cmp.Compare(x.term, y.term)
	}
	return cmp.Compare(asks[x.ask].quote.name, asks[y.ask].quote.name)
}

// sit begins a sitting: windows are cleared together.
func (f *Floor) sit() {
	f.sitting++
	f.bids, f.asks = f.bids[:0], f.asks[:0]
}

// rise ends it.
func (f *Floor) rise() {
	for i, q := range f.fleeting {
		f.book.release(q)
		f.fleeting[i] = nil
	}
	f.fleeting = f.fleeting[:0]
	clear(f.asks)
}

// enlist makes bids of what may win of the quotes that were asked for.
func (f *Floor) enlist(now quantity.Instant, offers []offer, uncontended bool) {
	m := f.cfg.Market
	sifts := len(offers) == 1 && !m.Exclusive && m.Payment != VCG
	soon := int64(f.horizonOf(now).Sub(now) / tick)
	f.pieces = f.pieces[:0]
	for i := range f.asks {
		a := &f.asks[i]
		q, r := a.quote, reckoning{now, &offers[a.offer], uncontended}
		fixed := q.job.isLate(now)
		a.weight = -1
		for k := len(q.terms) - 1; k >= 0; k-- { // the shorter ones come last, and beat the longer ones
			t := &q.terms[k]
			_, total, weight := f.weigh(&r, q, k)
			if weight >= a.weight {
				a.best, a.weight, a.score = int32(k), weight, total
			}
			x := piece{t.start, t.end, weight, int32(i), int32(k), t.start <= soon, fixed}
			if by := f.beater(&x); sifts && by >= 0 {
				f.pieces[by/2], f.pieces[by] = f.pieces[by], f.pieces[by/2] // it beats others too
			} else {
				f.pieces = append(f.pieces, x)
			}
		}
	}
	f.order = f.order[:0]
	for i := range f.pieces {
		if !sifts || f.beater(&f.pieces[i]) < 0 {
			f.order = append(f.order, int32(i))
		}
	}
	slices.SortFunc(f.order, func(i, k int32) int { // as bids are to be
		x, y := &f.pieces[i], &f.pieces[k]
		if c := cmp.Compare(f.asks[x.ask].offer, f.asks[y.ask].offer); c != 0 {
			return c
		}
		return x.compare(y, f.asks)
	})
	for _, i := range f.order {
		x := &f.pieces[i]
		a := &f.asks[x.ask]
		r := reckoning{now, &offers[a.offer], uncontended}
		t := a.quote.bid(int(x.term), now, r.offer.find())
		t.offer = a.offer
		t.calibrated, t.total, t.weight = f.weigh(&r, a.quote, int(x.term))
		f.bids = append(f.bids, t)
	}
}

// beater is the place of a piece that beats another one, -1 if none does.
func (f *Floor) beater(x *piece) int {
	if !x.fixed {
		for i := range f.pieces {
			if y := &f.pieces[i]; y.fits(x) && (y.weight > x.weight || y.compare(x, f.asks) < 0) {
				return i
			}
		}
	}
	return -1
}
