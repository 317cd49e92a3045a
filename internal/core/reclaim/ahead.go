package reclaim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Places are kept ahead of time for members of groups that are about to come: at once for a group that is let in, and for the first of each
// queue from when those who are in its way must have ended. All of a group's members (up to mostCopies of each part) get a place, or none
// does.

const (
	// recent is how long after it was let in a group's members are expected.
	recent = 15 * time.Minute
	// mostCopies bounds the places kept ahead for one part of a group, mostEarly those for all, mostAhead the groups that are searched for
	// in one pass.
	mostCopies = 64
	mostEarly  = 256
	mostAhead  = 2
)

// expected is a group whose members are to come; missing counts, for each part, those without a place.
type expected struct {
	*Group
	// They want their places from from until until; 0: now. With open the time is not known yet (Place.Open).
	from, until quantity.Instant
	open        bool
	missing     []int
}

// coming lists the groups whose members are to come and reconciles the places kept for them: members that have come take over places, and
// places that nobody needs are let go.
func (p *pass) coming() (list []*expected) {
	first := map[string]*Group{}
	for _, id := range sortedKeys(p.groups) {
		x := p.groups[id]
		if x.Since == 0 {
			h := first[x.Queue]
			if p.now >= p.shunned[id].until && (h == nil || x.Rank < h.Rank) {
				first[x.Queue] = x
			}
			continue
		}
		if done, tried := p.come[id]; p.now <= x.Since.Add(recent) && (!tried || !done && x.Admitted) {
			list = append(list, &expected{Group: x, until: quantity.Never, open: !x.Admitted})
		}
	}
	in := func(id ID) bool { x := p.groups[id]; return x != nil && x.Since != 0 }
	for id := range p.come { //sluice:sorted each is looked at alone
		if !in(id) {
			delete(p.come, id)
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
		p.settle(e, kept[e.ID], waiting[e.ID])
	}
	for _, id := range sortedKeys(kept) {
		for _, g := range kept[id] {
			if !expects[id] {
				p.missed(g, in(id))
				p.drop(g)
			}
		}
	}
	return list
}

// missed leaves a queue's first alone for a while if the time of its place came and it was not let in: another one was, or something else
// keeps it out.
func (p *pass) missed(g *Place, in bool) {
	if !in && g.later() && p.now >= g.From && p.now >= p.shunned[g.Group].until {
		p.shun(p.now, g.Group)
	}
}

// settle reconciles the places kept for one group with its members that have come, and sets how many it lacks.
func (p *pass) settle(e *expected, kept []*Place, waiting []*Wish) {
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
				p.missed(g, false)
			}
			if g.From != e.from || g.Open != e.open {
				g.turn(p.now, e)
				p.touch(g.Machine)
			}
		}
		e.missing = append(e.missing, min(n, mostCopies)-len(of))
	}
	if all && e.from == 0 {
		p.come[e.ID] = true
	}
}

// handOver gives a place that was kept ahead to a wish that has come and wants it now.
func (p *pass) handOver(g *Place, w *Wish) {
	g.turn(p.now, &expected{until: quantity.Never})
	g.Wish, g.Who, g.Kin, g.Asks, g.Group, g.Part, g.freed = w.ID, w.Who, w.Kin, w.Asks, "", 0, 0
	g.Claims = p.quest(w, g, nil).claims
	p.keep(g)
}

// turn changes when a place is wanted.
func (g *Place) turn(now quantity.Instant, e *expected) {
	if g.later() != (e.from != 0) || g.Open && !e.open {
		g.At, g.freed, g.made = max(g.At, now.Add(g.Notice)), 0, now
	}
	g.From, g.Until, g.Open = e.from, e.until, e.open
}

// ahead keeps places for members that are to come, of at most mostAhead groups in one pass, least recently tried first.
func (p *pass) ahead(list []*expected) {
	looks := 0
	slices.SortStableFunc(list, func(a, b *expected) int { return cmp.Compare(p.pausing[a.ID], p.pausing[b.ID]) })
	for _, e := range list {
		lacks := 0
		for _, n := range e.missing {
			lacks += max(0, n)
		}
		if lacks == 0 || p.now < max(p.pausing[e.ID], p.shunned[e.ID].until) || p.early+lacks > mostEarly || p.avoids(p.now, e.Owners) {
			continue
		}
		if looks++; looks > mostAhead {
			p.more = true
			break
		}
		places := p.placeAll(e)
		if len(places) == 0 {
			p.pausing[e.ID] = p.now.Add(rests)
			continue
		}
		for _, g := range places {
			p.keep(g)
		}
	}
}

// placeAll finds places for all members of a group that lack one, each next one where it costs least; none unless all get one.
func (p *pass) placeAll(e *expected) (places []*Place) {
	if len(p.names) == 0 {
		return nil
	}
	more := map[string][]*Place{} // places found so far, by machine
	for k, n := range e.missing {
		x := &e.Parts[k]
		var q *quest
		var at []*candidate
		for i := range n {
			if i < 2 { // the first member gets the devices of shared claims, so the others want less
				if x.Like.Blocked {
					return nil
				}
				if q = p.quest(&x.Like, nil, places); q.nothing() {
					break // nothing that is offered here
				}
				if i == 0 || slices.ContainsFunc(x.Like.Claims, func(c Claim) bool { return c.Key != "" }) {
					at = p.candidates(q, e, n-i, more)
				}
			}
			var best *candidate
			for _, c := range at {
				if c.g != nil && (best == nil || c.g.toll().compare(best.g.toll()) < 0) {
					best = c
				}
			}
			if best == nil {
				return nil
			}
			g := best.g
			p.number++
			g.Wish = ID(fmt.Sprintf("%s/%d", e.ID, p.number))
			g.Claims, g.Group, g.Part, g.made, g.Looked = q.claims, e.ID, k, p.now, len(at)
			g.From, g.Until, g.Open = e.from, e.until, e.open
			if g.later() {
				g.Closed = best.room.closes(g)
			}
			places = append(places, g)
			more[g.Machine] = append(more[g.Machine], g)
			best.look(q, more[g.Machine])
		}
	}
	return places
}

// candidate is a machine, and the place the next member would get there; nil: none any more.
type candidate struct {
	room *room
	base []*Place
	g    *Place
}

func (c *candidate) look(q *quest, more []*Place) {
	c.room.gives = append(slices.Clip(c.base), more...)
	c.g, _ = c.room.find(q)
}

// candidates are machines with a place for one of n members, at most enough of them; the search ends early once n places cost nothing.
func (p *pass) candidates(q *quest, e *expected, n int, more map[string][]*Place) (list []*candidate) {
	names := p.names
	if q.on != "" {
		names = []string{q.on}
	}
	free, from := 0, prng.Name(string(e.ID))>>32
	for i := range min(len(names), mostMachines) {
		m := p.machines[names[(from+uint64(i))%uint64(len(names))]]
		if m == nil || !m.admits(q.where) {
			continue
		}
		r := newRoom(m, p.now, p.on[m.Name], p.costs)
		r.when = e.from
		c := &candidate{room: r, base: r.gives}
		if c.look(q, more[m.Name]); c.g == nil {
			continue
		}
		list = append(list, c)
		if len(c.g.Cut) == 0 {
			free++
		}
		if len(list) >= enough || free >= n {
			break
		}
	}
	return list
}
