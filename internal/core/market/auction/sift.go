package auction

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/variant"
	"sluice.dev/sluice/internal/core/quantity"
)

// heard is a quote as it was heard for one of the windows that are cleared together.
type heard struct {
	quote *quote
	offer int32
	// best is its heaviest variant, with what that weighs and its score.
	best          int32
	weight, score int64
}

// piece is a variant of a quote that may win.
type piece struct {
	start, end, weight int64
	heard, term        int32
	// soon: it begins so soon that it could be sold now. late: its job is late, so it may go first.
	soon, late bool
}

// fits reports whether a piece lies within the time of another and is worth at least as much. Only such a piece may take time that could be
// sold now, since a window is not kept for later if a job can use it now (idle).
func (x *piece) fits(y *piece) bool {
	return x.weight >= y.weight && x.start >= y.start && x.end <= y.end && (x.soon || !y.soon)
}

// sieve drops variants that can't win their window. Invariant: a piece is beaten if one worth more lies within its time, since any plan
// with the first is worth more with the second; so only unbeaten pieces are cleared, and the sale is that of clearing everything: a piece
// in no best plan is in none of the others that clearing compares either. Of pieces of the same worth the first by job and variant beats
// the others: of equal plans clearing takes the one that ends first, then the first in that order. Bids of late jobs, which are fixed
// before the rest is cleared, leave room for both or for the second alone.
//
// That holds where plans are compared by their sum alone: not where one variant of a job excludes another (Exclusive, and several windows
// at once), nor where prices depend on what would win without the winner (VCG).
type sieve struct {
	// heard are the quotes for all windows that are cleared together, pieces those of their variants that may win.
	heard  []heard
	pieces []piece
	order  []int32
}

// compare orders pieces for one window by job and variant.
func (s *sieve) compare(x, y *piece) int {
	if x.heard == y.heard {
		return cmp.Compare(x.term, y.term)
	}
	return cmp.Compare(s.heard[x.heard].quote.name, s.heard[y.heard].quote.name)
}

// sift appends to bids what may win of the quotes that were heard. sifts: what is beaten can't.
func (s *sieve) sift(now quantity.Instant, q *quoter, offers []agents.Offer, uncontended bool, bids []bid) []bid {
	m := q.cfg
	sifts := len(offers) == 1 && !m.Exclusive && m.Payment != VCG
	soon := int64(m.soldUntil(now).Sub(now) / variant.Tick)
	s.pieces = s.pieces[:0]
	for i := range s.heard {
		a := &s.heard[i]
		fixed := a.quote.job.IsLate(now)
		a.weight = -1
		for k := len(a.quote.terms) - 1; k >= 0; k-- { // the shorter ones come last, and beat the longer ones
			t, w := &a.quote.terms[k], q.worth(now, a.quote, k, &offers[a.offer], uncontended)
			if w.weight >= a.weight {
				a.best, a.weight, a.score = int32(k), w.weight, w.total
			}
			x := piece{t.start, t.end, w.weight, int32(i), int32(k), t.start <= soon, fixed}
			if by := s.beater(&x); sifts && by >= 0 {
				s.pieces[by/2], s.pieces[by] = s.pieces[by], s.pieces[by/2] // it beats others too
			} else {
				s.pieces = append(s.pieces, x)
			}
		}
	}
	s.order = s.order[:0]
	for i := range s.pieces {
		if !sifts || s.beater(&s.pieces[i]) < 0 {
			s.order = append(s.order, int32(i))
		}
	}
	slices.SortFunc(s.order, func(i, k int32) int { // as bids are to be
		x, y := &s.pieces[i], &s.pieces[k]
		if c := cmp.Compare(s.heard[x.heard].offer, s.heard[y.heard].offer); c != 0 {
			return c
		}
		return s.compare(x, y)
	})
	for _, i := range s.order {
		x := &s.pieces[i]
		a := &s.heard[x.heard]
		o := &offers[a.offer]
		t := a.quote.bid(int(x.term), now, o.Find())
		t.offer, t.worth = a.offer, q.worth(now, a.quote, int(x.term), o, uncontended)
		bids = append(bids, t)
	}
	return bids
}

// beater is the place of a piece that beats another one, -1 if none does.
func (s *sieve) beater(x *piece) int {
	if !x.late {
		for i := range s.pieces {
			if y := &s.pieces[i]; y.fits(x) && (y.weight > x.weight || s.compare(y, x) < 0) {
				return i
			}
		}
	}
	return -1
}

// soldUntil is how soon a subjob must begin to be sold now.
func (c *Config) soldUntil(now quantity.Instant) quantity.Instant {
	if c.Repack == Rolling {
		return now.Add(c.Freeze)
	}
	return quantity.Never
}
