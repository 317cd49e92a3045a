package reclaim

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// find chooses the subjobs to stop on the machine for a demand, and their cost; false if stopping all that may be stopped is not enough.
func (r *room) find(q *demand) (pl *Place, ok bool) {
	r.bounded = false
	pl = &Place{Wish: q.id, Who: q.who, Equiv: q.equiv, Machine: r.Name, Asks: q.asks}
	if !r.findCounted(q.asks, pl) || !r.findDevices(q.wants, pl) {
		return nil, false
	}
	slices.Sort(pl.Stops)
	for _, id := range pl.Stops {
		n, _ := r.notice(id)
		pl.Notice = max(pl.Notice, n)
	}
	pl.At = r.now.Add(pl.Notice)
	return pl, true
}

// findCounted adds to a place the cheapest subjobs to stop for the counted devices that are short.
func (r *room) findCounted(asks []Ask, pl *Place) bool {
	for _, a := range asks {
		short := a.N
		if x := r.resource(a.Resource); x != nil {
			short -= x.N
		}
		var pieces []Piece
		var ids []job.SliceID
		for i := range r.Tenants {
			t := &r.Tenants[i]
			n := amount(t.Asks, a.Resource)
			if n == 0 || r.gone(t.End) {
				continue
			}
			short += n
			if t.Slice != "" && r.stoppable(t.Slice) && !r.beingStopped(t.Slice) {
				pieces, ids = append(pieces, Piece{Frees: []int64{n}, Cost: r.cost(t.Slice)}), append(ids, t.Slice)
			}
		}
		for _, before := range r.places { // earlier places have precedence: what is freed for them is not free
			if r.when == 0 && before.scheduled() {
				continue
			}
			short += amount(before.Asks, a.Resource)
			for i := range r.Tenants {
				if t := &r.Tenants[i]; t.Slice != "" && !r.gone(t.End) && slices.Contains(before.Stops, t.Slice) {
					short -= amount(t.Asks, a.Resource)
				}
			}
		}
		chosen, enough := Choose([]int64{short}, pieces)
		r.bounded = r.bounded || chosen.Bounded
		if !enough {
			return false
		}
		pl.Cost = pl.Cost.Plus(chosen.Cost)
		for _, i := range chosen.Pieces {
			pl.Stops = append(pl.Stops, ids[i])
		}
	}
	return true
}

// findDevices adds to a place the cheapest devices for all wants, and the subjobs to stop for them; false if there are none.
func (r *room) findDevices(wants []want, pl *Place) bool {
	pools := r.freePools()
	found, bounded := pools.devices(wants, pl)
	for _, x := range pools {
		bounded = bounded || x.bounded
	}
	r.bounded = r.bounded || bounded
	return found
}
