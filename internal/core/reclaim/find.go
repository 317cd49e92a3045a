package reclaim

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// find says what to give back on the machine for a wish, and the cost; false if even stopping all that may be stopped would not do.
func (r *room) find(q *quest) (g *Place, ok bool) {
	g = &Place{Wish: q.id, Who: q.who, Kin: q.kin, Machine: r.Name, Asks: q.asks}
	if !r.findCounted(q.asks, g) || !r.lefts().devices(q.wants, g) {
		return nil, false
	}
	slices.Sort(g.Cut)
	for _, id := range g.Cut {
		n, _ := r.notice(id)
		g.Notice = max(g.Notice, n)
	}
	g.At = r.now.Add(g.Notice)
	return g, true
}

// findCounted adds to g the cheapest subjobs to stop for the counted devices that are lacking.
func (r *room) findCounted(asks []Ask, g *Place) bool {
	for _, a := range asks {
		short := a.N
		if x := r.resource(a.Resource); x != nil {
			short -= x.N
		}
		var pieces []Piece
		var ids []job.SliceID
		for i := range r.Tenants {
			t := &r.Tenants[i]
			n := of(t.Asks, a.Resource)
			if n == 0 || r.gone(t.End) {
				continue
			}
			short += n
			if _, gives := r.notice(t.Slice); t.Slice != "" && gives && !r.given(t.Slice) {
				pieces, ids = append(pieces, Piece{Frees: []int64{n}, Cost: r.cost(t.Slice)}), append(ids, t.Slice)
			}
		}
		for _, before := range r.gives { // they come first: what is freed for them is not free
			if r.when == 0 && before.later() {
				continue
			}
			short += of(before.Asks, a.Resource)
			for i := range r.Tenants {
				if t := &r.Tenants[i]; t.Slice != "" && !r.gone(t.End) && slices.Contains(before.Cut, t.Slice) {
					short -= of(t.Asks, a.Resource)
				}
			}
		}
		chosen, cost, enough := Choose([]int64{short}, pieces)
		if !enough {
			return false
		}
		g.Cost = g.Cost.Plus(cost)
		for _, i := range chosen {
			g.Cut = append(g.Cut, ids[i])
		}
	}
	return true
}
