package reclaim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// serve searches for places for wishes, least recently searched first, then the oldest: so a wish that finds nothing, however old, starves
// no other.
func (p *pass) serve() {
	type waiter struct {
		*Wish
		due quantity.Instant
	}
	waiters := make([]waiter, 0, len(p.wishes))
	for _, w := range p.wishes { //sluice:sorted the list is sorted next
		waiters = append(waiters, waiter{w, p.retryAt(w.ID, w.Equiv.Shape)})
	}
	slices.SortFunc(waiters, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range waiters {
		if w.Blocked || !p.maySearch(p.now, w.ID, w.Equiv) || p.nominations.preempting(p.now, w.ID) {
			continue
		}
		q := p.demand(w.Wish, nil, nil)
		switch {
		case q.empty() && q.on != "":
			continue // all of its claims get their devices in another place
		case q.empty():
			p.shapeRetry[w.Equiv.Shape] = p.now.Add(retryDelay)
			continue
		}
		if p.searches++; p.searches > maxSearches {
			p.unfinished = true // the rest are served in the next pass
			break
		}
		pl, s, seemsFree := p.place(q)
		switch {
		case pl != nil:
			p.keep(pl)
			delete(p.misses, miss{id: w.ID})
			delete(p.misses, miss{shape: w.Equiv.Shape})
		case seemsFree:
			p.retry[w.ID] = p.now.Add(time.Second)
		case q.on != "": // bound to one machine by a claim; wishes of its shape may find room elsewhere
			p.retry[w.ID] = p.now.Add(retryDelay)
			p.misses[miss{id: w.ID}] = s
		default:
			p.shapeRetry[w.Equiv.Shape] = p.now.Add(retryDelay)
			p.misses[miss{shape: w.Equiv.Shape}] = s
		}
	}
}

// stillNeeded reports whether a place is needed any longer: while its wish waits, and for unusedTimeout once it is free. The time that our
// subjobs need to stop does not count.
func (p *pass) stillNeeded(pl *Place) bool {
	if pl.Group == "" && p.wishes[pl.Wish] == nil {
		return false
	}
	switch {
	case pl.scheduled():
		return true
	case pl.spare && p.now >= pl.made.Add(schedulerBackoff): // something that is not modelled keeps its wish out
		p.idle[pl.Equiv] = p.now
		return false
	case pl.preempted:
		return pl.keptForScheduler(p)
	case pl.Open && p.now <= pl.made.Add(openTimeout):
		return true
	case pl.Open:
		p.handled[pl.Group] = false
		return false
	}
	m := p.machines[pl.Machine]
	if m != nil && slices.ContainsFunc(pl.Stops, func(id job.SliceID) bool { return m.tenant(id) != nil }) {
		if p.now <= pl.At.Add(stopTimeout) {
			return true
		}
		p.recordUnused(p.now, pl)
		return false
	}
	pl.freed = cmp.Or(pl.freed, p.now)
	if p.now > pl.freed.Add(unusedTimeout) {
		p.recordUnused(p.now, pl)
		return false
	}
	if p.taken(pl) {
		delete(p.freeSince, pl.Wish) // its wish could not use it: what else is free is kept for it in turn
		return false
	}
	return true
}

// taken reports whether another workload took the place: our subjobs are gone, and yet there is no room for its wish. It happens since
// kube-scheduler tries new Pods at once and retries waiting ones after a back-off.
func (p *pass) taken(pl *Place) bool {
	m := p.machines[pl.Machine]
	if m == nil {
		return true
	}
	q := p.demandOf(pl)
	if q == nil {
		return false
	}
	r := newRoom(m, p.now, without(p.on[m.Name], pl), p.costs)
	more, ok := r.find(q)
	return !ok || len(more.Stops) > 0
}

// place finds the machine where making room for a demand costs least; nil if there is none. seemsFree: there seems to be room already, and
// the scheduler gets its longest back-off to use it. The place is that room, which would be sold before the scheduler comes back to the
// wish; nil if its class lately left such a place unused, and of devices by claims. After that the wish is assumed to be kept out there
// for a reason not modelled here, and room is made elsewhere. Machines where its class left a place unused come last.
func (p *pass) place(q *demand) (best *Place, s Search, seemsFree bool) {
	names := p.hosts
	if q.on != "" {
		names = []string{q.on}
	}
	var unused []string
	if f := p.unused[q.equiv]; f != nil {
		unused = f.machines
	}
	since, waiting := p.freeSince[q.id]
	var spare, last *Place
	better := func(pl *Place, best **Place) {
		if *best == nil || cmp.Or(pl.stopCost().compare((*best).stopCost()), strings.Compare(pl.Machine, (*best).Machine)) < 0 {
			*best = pl
		}
	}
	// Each wish begins at a different machine, and each later search elsewhere.
	from := prng.Name(string(q.id))>>32 + uint64(p.now.Sub(0)/retryDelay)*maxMachines
	s = Search{Known: len(names), Whole: q.exact()}
	var ways []Way
	for i := range names {
		m := p.machines[names[(from+uint64(i))%uint64(len(names))]]
		if m == nil || !m.admits(q.where) {
			continue
		}
		r := p.room(m)
		pl, ok := r.find(q)
		s.Machines, s.Whole = s.Machines+1, s.Whole && !r.bounded
		avoided := slices.Contains(unused, m.Name)
		switch {
		case !ok:
		case len(pl.Stops) == 0:
			s.Free++
			if spare == nil {
				spare = pl
			}
		case avoided:
			better(pl, &last)
			s.Avoided++
		default:
			better(pl, &best)
		}
		if ok && len(pl.Stops) > 0 {
			s.Places++
			ways = append(ways, Way{pl.Machine, pl.Stops, pl.Cost, avoided})
		}
		if s.Machines >= maxMachines || s.Machines >= enoughMachines && best != nil {
			s.Whole = s.Whole && i == len(names)-1
			break
		}
	}
	switch {
	case spare == nil:
		delete(p.freeSince, q.id)
	case !waiting:
		p.freeSince[q.id] = p.now
		// Devices of claims are seen free while the scheduler has given them to another already, so nothing is to be had by keeping them.
		if _, left := p.idle[q.equiv]; left || len(q.wants) > 0 {
			return nil, s, true
		}
		spare.spare = true
		return spare.complete(q, s, p.now), s, true
	case p.now < since.Add(schedulerBackoff):
		return nil, s, true
	}
	if best == nil {
		best, s.Last = last, last != nil
	}
	if best != nil {
		best.complete(q, s, p.now).Spared = p.spared(q, best, ways)
	}
	return best, s, false
}

// complete makes what was found for a demand its place from now on.
func (pl *Place) complete(q *demand, s Search, now quantity.Instant) *Place {
	pl.Claims, pl.Search, pl.Until, pl.made = q.claims, s, quantity.Never, now
	return pl
}

// spared are the ways to make room that come after a place, in the order in which they would have been taken: the best on each other
// machine and, on its own machine, again and again the best that stops none of the subjobs before.
func (p *pass) spared(q *demand, best *Place, ways []Way) []Way {
	ways = slices.DeleteFunc(ways, func(w Way) bool { return w.Machine == best.Machine })
	r := *p.room(p.machines[best.Machine])
	for taken := best; len(r.barred) < 2*maxSpared; {
		r.barred = append(r.barred, taken.Stops...)
		pl, ok := r.find(q)
		best.Search.Whole = best.Search.Whole && !r.bounded
		if !ok || len(pl.Stops) == 0 {
			break
		}
		ways, taken = append(ways, Way{pl.Machine, pl.Stops, pl.Cost, best.Search.Last}), pl
	}
	slices.SortStableFunc(ways, func(a, b Way) int {
		switch {
		case !a.Avoided && b.Avoided:
			return -1
		case a.Avoided && !b.Avoided:
			return 1
		}
		return cmp.Or(a.stopCost().compare(b.stopCost()), strings.Compare(a.Machine, b.Machine))
	})
	return ways[:min(len(ways), maxSpared)]
}

func without(list []*Place, pl *Place) []*Place {
	return slices.DeleteFunc(slices.Clone(list), func(o *Place) bool { return o == pl })
}
