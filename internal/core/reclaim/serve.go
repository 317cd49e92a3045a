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

// serve searches for those who wait, least recently tried first, then longest waiting: so one that finds nothing, however old, starves
// nobody.
func (p *pass) serve() {
	type waiter struct {
		*Wish
		due quantity.Instant
	}
	waiters := make([]waiter, 0, len(p.wishes))
	for _, w := range p.wishes { //sluice:sorted the list is sorted next
		waiters = append(waiters, waiter{w, p.due(w.ID, w.Kin.Shape)})
	}
	slices.SortFunc(waiters, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range waiters {
		if w.Blocked || !p.may(p.now, w.ID, w.Kin) {
			continue
		}
		q := p.quest(w.Wish, nil, nil)
		switch {
		case q.nothing() && q.on != "":
			continue // all of its claims get devices in a place that is kept already: no search is needed
		case q.nothing():
			p.resting[w.Kin.Shape] = p.now.Add(rests)
			continue
		}
		if p.looks++; p.looks > mostLooks {
			p.more = true // the rest have their turn in the next pass
			break
		}
		g, room := p.place(q)
		switch {
		case g != nil:
			p.keep(g)
		case room:
			p.pausing[w.ID] = p.now.Add(time.Second)
		case q.on != "": // bound to one machine by a claim; wishes of its shape may find room elsewhere
			p.pausing[w.ID] = p.now.Add(rests)
		default:
			p.resting[w.Kin.Shape] = p.now.Add(rests)
		}
	}
}

// keeps reports whether a place is still to be kept: while its wish waits, and for patience once it is free. The time that our own there
// need to end does not count.
func (p *pass) keeps(g *Place) bool {
	if g.Group == "" && p.wishes[g.Wish] == nil {
		return false
	}
	switch {
	case g.later():
		return true
	case g.Open && p.now <= g.made.Add(opens):
		return true
	case g.Open:
		p.come[g.Group] = false
		return false
	}
	m := p.machines[g.Machine]
	if m != nil && slices.ContainsFunc(g.Cut, func(id job.SliceID) bool { return m.tenant(id) != nil }) {
		if p.now <= g.At.Add(longest) {
			return true
		}
		p.vain(p.now, g)
		return false
	}
	if g.freed == 0 {
		g.freed = p.now
	}
	if p.now > g.freed.Add(patience) {
		p.vain(p.now, g)
		return false
	}
	return !p.taken(g)
}

// taken reports whether somebody else took the place: our subjobs are gone, and yet there is no room for its wish. It happens since
// kube-scheduler tries new Pods at once and retries waiting ones after a back-off.
func (p *pass) taken(g *Place) bool {
	m := p.machines[g.Machine]
	if m == nil {
		return true
	}
	q := p.questOf(g)
	if q == nil {
		return false
	}
	r := newRoom(m, p.now, without(p.on[m.Name], g), p.costs)
	more, ok := r.find(q)
	return !ok || len(more.Cut) > 0
}

// place finds the machine where making room for a wish loses least; nil if there is none. With room set there seems to be room already, and
// who gives devices out gets its longest back-off to use it; after that the wish is taken to be kept out there for a reason not modelled
// here, and room is made elsewhere. Machines where a place was kept in vain for its kin come last.
func (p *pass) place(q *quest) (best *Place, room bool) {
	names := p.hosts
	if q.on != "" {
		names = []string{q.on}
	}
	var failed []string
	if f := p.failed[q.kin]; f != nil {
		failed = f.machines
	}
	since, roomy := p.roomy[q.id]
	seen := false
	var last *Place
	better := func(g *Place, best **Place) {
		if *best == nil || cmp.Or(g.toll().compare((*best).toll()), strings.Compare(g.Machine, (*best).Machine)) < 0 {
			*best = g
		}
	}
	// Wishes begin at different machines, and each elsewhere next time.
	from, fits := prng.Name(string(q.id))>>32+uint64(p.now.Sub(0)/rests)*mostMachines, 0
	for i := range names {
		m := p.machines[names[(from+uint64(i))%uint64(len(names))]]
		if m == nil || !m.admits(q.where) {
			continue
		}
		g, ok := p.room(m).find(q)
		switch {
		case !ok:
		case len(g.Cut) == 0:
			seen = true
		case slices.Contains(failed, m.Name):
			better(g, &last)
		default:
			better(g, &best)
		}
		if fits++; fits >= mostMachines || fits >= enough && best != nil {
			break
		}
	}
	switch {
	case !seen:
		delete(p.roomy, q.id)
	case !roomy:
		p.roomy[q.id] = p.now
		return nil, true
	case p.now < since.Add(pauses):
		return nil, true
	}
	if best == nil {
		best = last
	}
	if best != nil {
		best.Claims, best.Looked, best.Until, best.made = q.claims, fits, quantity.Never, p.now
	}
	return best, false
}

func without(list []*Place, g *Place) []*Place {
	return slices.DeleteFunc(slices.Clone(list), func(o *Place) bool { return o == g })
}
