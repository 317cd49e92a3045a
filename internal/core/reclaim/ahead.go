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
		if g := p.places[id]; g.Group != "" {
			kept[g.Group] = append(kept[g.Group], g)
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
		for _, g := range kept[id] {
			if !expects[id] {
				p.missedTime(g, in(id))
				p.drop(g)
			}
		}
	}
	return list
}

// missedTime backs a queued group off if the time of its place came and it was not admitted: another group was, or something else keeps it
// out.
func (p *pass) missedTime(g *Place, in bool) {
	if !in && g.scheduled() && p.now >= g.From && p.now >= p.backoffs[g.Group].until {
		p.backOff(p.now, g.Group)
	}
}

// reconcile matches the places kept for one group with its members that have come, and sets how many each part lacks.
func (p *pass) reconcile(e *expected, kept []*Place, waiting []*Wish) {
	all := true
	for k := range e.Parts {
		x := &e.Parts[k]
		of := slices.DeleteFunc(slices.Clone(kept), func(g *Place) bool { return g.Part != k })
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
				if i := slices.IndexFunc(of, func(g *Place) bool { return g.Machine == machine }); i >= 0 {
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
					g := of[0]
					drop(0)
					p.handOver(g, w)
					n--
				}
			}
		}
		for n < len(of) {
			drop(len(of) - 1)
		}
		for _, g := range of {
			if e.from > g.From {
				p.missedTime(g, false)
			}
			if g.From != e.from || g.Open != e.open {
				g.reschedule(p.now, e)
				p.touch(g.Machine)
			}
		}
		e.missing = append(e.missing, min(n, maxCopies)-len(of))
	}
	if all && e.from == 0 {
		p.handled[e.ID] = true
	}
}

// handOver gives a place that was kept ahead to a member that has come and wants it now.
func (p *pass) handOver(g *Place, w *Wish) {
	g.reschedule(p.now, &expected{until: quantity.Never})
	g.Wish, g.Who, g.Equiv, g.Asks, g.Group, g.Part, g.freed = w.ID, w.Who, w.Equiv, w.Asks, "", 0, 0
	g.Claims = p.demand(w, g, nil).claims
	p.keep(g)
}

// reschedule changes the time for which a place is kept.
func (g *Place) reschedule(now quantity.Instant, e *expected) {
	if g.scheduled() != (e.from != 0) || g.Open && !e.open {
		g.At, g.freed, g.made = max(g.At, now.Add(g.Notice)), 0, now
	}
	g.From, g.Until, g.Open = e.from, e.until, e.open
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
		for _, g := range places {
			p.keep(g)
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
				if c.g != nil && (best == nil || c.g.stopCost().compare(best.g.stopCost()) < 0) {
					best = c
				}
			}
			if best == nil {
				return nil
			}
			g := best.g
			p.serial++
			g.Wish = ID(fmt.Sprintf("%s/%d", e.ID, p.serial))
			g.Claims, g.Group, g.Part, g.made = q.claims, e.ID, k, p.now
			g.Search = Search{Machines: len(at), Known: len(p.names), Places: stopping(at), Free: len(at) - stopping(at)}
			g.From, g.Until, g.Open = e.from, e.until, e.open
			if g.scheduled() {
				g.Closed = best.room.closedFor(g)
			}
			places = append(places, g)
			more[g.Machine] = append(more[g.Machine], g)
			best.refresh(q, more[g.Machine])
		}
	}
	return places
}

// candidate is a machine with the place that the next member would get there; place is nil if there is none.
type candidate struct {
	room *room
	base []*Place
	g    *Place
}

func (c *candidate) refresh(q *demand, more []*Place) {
	c.room.places = append(slices.Clip(c.base), more...)
	c.g, _ = c.room.find(q)
}

// stopping is on how many of these machines the next member's place would stop subjobs.
func stopping(at []*candidate) (n int) {
	for _, c := range at {
		if c.g != nil && len(c.g.Cut) > 0 {
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
		if c.refresh(q, more[m.Name]); c.g == nil {
			continue
		}
		list = append(list, c)
		if len(c.g.Cut) == 0 {
			free++
		}
		if len(list) >= enoughMachines || free >= n {
			break
		}
	}
	return list
}
