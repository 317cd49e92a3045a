package reclaim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Places are kept ahead of time for the members of groups whose Pods do not exist yet: now for a group whose quota is reserved, and from
// the time at which the blockers of a queue's first group must have ended. Placement is all or nothing: every member (up to maxCopies of
// each part) gets a place, or none does.

const (
	// arrivalTimeout is how long after its quota was reserved a group's members are expected.
	arrivalTimeout = 15 * time.Minute
	// maxCopies bounds the places kept ahead for one part of a group, maxAhead those for all groups, and maxGroupSearches the groups
	// searched for in one pass.
	maxCopies        = 64
	maxAhead         = 256
	maxGroupSearches = 2
)

// expected is a group whose members have not all come; missing is the number of places that each part lacks.
type expected struct {
	*Group
	// The members want their places from from (0: now) until until. With open the time is not known yet (Place.Open).
	from, until quantity.Instant
	open        bool
	missing     []int
}

// expectedGroups lists the groups whose members are expected and reconciles the places kept for them: members that have come take over
// places, and places that no group needs are released.
func (p *pass) expectedGroups() (list []*expected) {
	first := map[string]*Group{}
	for _, id := range sortedKeys(p.groups) {
		x := p.groups[id]
		if x.Since == 0 {
			h := first[x.Queue]
			if p.now >= p.backoffs[id].until && (h == nil || x.Rank < h.Rank) {
				first[x.Queue] = x
			}
			continue
		}
		if done, tried := p.handled[id]; p.now <= x.Since.Add(arrivalTimeout) && (!tried || !done && x.Admitted) {
			list = append(list, &expected{Group: x, until: quantity.Never, open: !x.Admitted})
		}
	}
	in := func(id ID) bool { x := p.groups[id]; return x != nil && x.Since != 0 }
	for id := range p.handled { //sluice:sorted each entry is checked by itself
		if !in(id) {
			delete(p.handled, id)
		}
	}
	for _, queue := range sortedKeys(first) {
		if x := first[queue]; x.From != 0 {
			list = append(list, &expected{Group: x, from: x.From, until: x.Until})
		}
	}
	slices.SortFunc(list, func(a, b *expected) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.ID, b.ID)) })
	expects := map[ID]bool{}
	kept := map[ID][]*Place{}
	for _, id := range sortedKeys(p.places) {
		if pl := p.places[id]; pl.Group != "" {
			kept[pl.Group] = append(kept[pl.Group], pl)
		}
	}
	waiting := map[ID][]*Wish{}
	for _, id := range sortedKeys(p.wishes) {
		if w := p.wishes[id]; w.Group != "" {
			waiting[w.Group] = append(waiting[w.Group], w)
		}
	}
	for _, e := range list {
		expects[e.ID] = true
		p.reconcile(e, kept[e.ID], waiting[e.ID])
	}
	for _, id := range sortedKeys(kept) {
		for _, pl := range kept[id] {
			if !expects[id] {
				p.missedTime(pl, in(id))
				p.drop(pl)
			}
		}
	}
	return list
}

// missedTime backs a queued group off if the time of its place came and it was not admitted: another group was, or something else keeps it
// out.
func (p *pass) missedTime(pl *Place, in bool) {
	if !in && pl.scheduled() && p.now >= pl.From && p.now >= p.backoffs[pl.Group].until {
		p.backOff(p.now, pl.Group)
	}
}

// reconcile matches the places kept for one group with its members that have come, and sets how many each part lacks.
func (p *pass) reconcile(e *expected, kept []*Place, waiting []*Wish) {
	all := true
	for k := range e.Parts {
		x := &e.Parts[k]
		of := slices.DeleteFunc(slices.Clone(kept), func(pl *Place) bool { return pl.Part != k })
		drop := func(i int) {
			p.drop(of[i])
			of = slices.Delete(of, i, i+1)
		}
		n := x.N
		if e.from == 0 {
			for _, machine := range x.Bound {
				if n == 0 {
					break
				}
				n--
				if i := slices.IndexFunc(of, func(pl *Place) bool { return pl.Machine == machine }); i >= 0 {
					drop(i)
				}
			}
			all = all && n == 0
			for _, w := range waiting {
				switch {
				case n == 0 || w.Part != k:
				case p.places[w.ID] != nil:
					n--
				case len(of) > 0:
					pl := of[0]
					drop(0)
					p.handOver(pl, w)
					n--
				}
			}
		}
		for n < len(of) {
			drop(len(of) - 1)
		}
		for _, pl := range of {
			if e.from > pl.From {
				p.missedTime(pl, false)
			}
			if pl.From != e.from || pl.Open != e.open {
				pl.reschedule(p.now, e)
				p.touch(pl.Machine)
			}
		}
		e.missing = append(e.missing, min(n, maxCopies)-len(of))
	}
	if all && e.from == 0 {
		p.handled[e.ID] = true
	}
}

// handOver gives a place that was kept ahead to a member that has come and wants it now.
func (p *pass) handOver(pl *Place, w *Wish) {
	pl.reschedule(p.now, &expected{until: quantity.Never})
	pl.Wish, pl.Who, pl.Equiv, pl.Asks, pl.Group, pl.Part, pl.freed = w.ID, w.Who, w.Equiv, w.Asks, "", 0, 0
	pl.Claims = p.demand(w, pl, nil).claims
	p.keep(pl)
}

// reschedule changes the time for which a place is kept.
func (pl *Place) reschedule(now quantity.Instant, e *expected) {
	if pl.scheduled() != (e.from != 0) || pl.Open && !e.open {
		pl.At, pl.freed, pl.made = max(pl.At, now.Add(pl.Notice)), 0, now
	}
	pl.From, pl.Until, pl.Open = e.from, e.until, e.open
}

// keepAhead searches for places for groups that lack some, least recently searched first, for at most maxGroupSearches groups in one pass.
func (p *pass) keepAhead(list []*expected) {
	searches := 0
	slices.SortStableFunc(list, func(a, b *expected) int { return cmp.Compare(p.retry[a.ID], p.retry[b.ID]) })
	for _, e := range list {
		lacks := 0
		for _, n := range e.missing {
			lacks += max(0, n)
		}
		if lacks == 0 || p.now < max(p.retry[e.ID], p.backoffs[e.ID].until) || p.ahead+lacks > maxAhead ||
			p.ownerBacksOff(p.now, e.Owners) {
			continue
		}
		if searches++; searches > maxGroupSearches {
			p.unfinished = true
			break
		}
		places := p.placeAll(e)
		if len(places) == 0 {
			p.retry[e.ID] = p.now.Add(retryDelay)
			continue
		}
		for _, pl := range places {
			p.keep(pl)
		}
	}
}

// placeAll finds places for all members of a group that lack one, each at the lowest cost given those before it; nil unless all get one.
func (p *pass) placeAll(e *expected) (places []*Place) {
	if len(p.names) == 0 {
		return nil
	}
	more := map[string][]*Place{} // found so far, by machine
	for k, n := range e.missing {
		x := &e.Parts[k]
		var q *demand
		var at []*candidate
		for i := range n {
			if i < 2 { // the first member gets the devices of shared claims, so the others need fewer
				if x.Like.Blocked {
					return nil
				}
				if q = p.demand(&x.Like, nil, places); q.empty() {
					break // nothing that is offered here
				}
				if i == 0 || slices.ContainsFunc(x.Like.Claims, func(c Claim) bool { return c.Key != "" }) {
					at = p.candidates(q, e, n-i, more)
				}
			}
			var best *candidate
			for _, c := range at {
				if c.place != nil && (best == nil || c.place.stopCost().compare(best.place.stopCost()) < 0) {
					best = c
				}
			}
			if best == nil {
				return nil
			}
			pl := best.place
			p.serial++
			pl.Wish = ID(fmt.Sprintf("%s/%d", e.ID, p.serial))
			pl.Claims, pl.Group, pl.Part, pl.made = q.claims, e.ID, k, p.now
			pl.Search = Search{Machines: len(at), Known: len(p.names), Places: stopping(at), Free: len(at) - stopping(at)}
			pl.From, pl.Until, pl.Open = e.from, e.until, e.open
			if pl.scheduled() {
				pl.Closed = best.room.closedFor(pl)
			}
			places = append(places, pl)
			more[pl.Machine] = append(more[pl.Machine], pl)
			best.refresh(q, more[pl.Machine])
		}
	}
	return places
}

// candidate is a machine with the place that the next member would get there; place is nil if there is none.
type candidate struct {
	room  *room
	base  []*Place
	place *Place
}

func (c *candidate) refresh(q *demand, more []*Place) {
	c.room.places = append(slices.Clip(c.base), more...)
	c.place, _ = c.room.find(q)
}

// stopping is on how many of these machines the next member's place would stop subjobs.
func stopping(at []*candidate) (n int) {
	for _, c := range at {
		if c.place != nil && len(c.place.Stops) > 0 {
			n++
		}
	}
	return n
}

// candidates are machines with a place for one of n members, at most enough of them; the search ends once n of them need nothing to be
// stopped.
func (p *pass) candidates(q *demand, e *expected, n int, more map[string][]*Place) (list []*candidate) {
	names := p.names
	if q.on != "" {
		names = []string{q.on}
	}
	free, from := 0, prng.Name(string(e.ID))>>32
	for i := range min(len(names), maxMachines) {
		m := p.machines[names[(from+uint64(i))%uint64(len(names))]]
		if m == nil || !m.admits(q.where) {
			continue
		}
		r := newRoom(m, p.now, p.on[m.Name], p.costs)
		r.when = e.from
		c := &candidate{room: r, base: r.places}
		if c.refresh(q, more[m.Name]); c.place == nil {
			continue
		}
		list = append(list, c)
		if len(c.place.Stops) == 0 {
			free++
		}
		if len(list) >= enoughMachines || free >= n {
			break
		}
	}
	return list
}
