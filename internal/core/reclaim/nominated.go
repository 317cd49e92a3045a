package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// A scheduler that preempts, as kube-scheduler does for extended resources, says on which machine it makes room for a wish, and ends
// subjobs there that it chooses by itself. What they leave is kept for the wish: sold again it would be a place that the scheduler refuses
// to the subjob, and one that it tries again and again. Nothing else is stopped meanwhile.

// serveNominated keeps places for wishes on the machines that their scheduler nominated, among what is free there or leaving. They are not
// counted as searches, as each is for one machine, and do not back off, as they stop nothing.
func serveNominated(p *pass) {
	var list []*Wish
	for _, w := range p.wishes { //sluice:sorted the list is sorted next
		if w.Nominated != "" {
			list = append(list, w)
		} else {
			delete(p.nominations, w.ID)
		}
	}
	slices.SortFunc(list, func(a, b *Wish) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID)) })
	for _, w := range list {
		if p.nominations[w.ID].machine != w.Nominated {
			p.nominations[w.ID] = nomination{machine: w.Nominated, since: p.now}
		}
		m := p.machines[w.Nominated]
		if m != nil && slices.ContainsFunc(m.Tenants, func(t Tenant) bool { return t.leaves(p.now) }) {
			n := p.nominations[w.ID]
			n.left = p.now
			p.nominations[w.ID] = n
		}
		if pl := p.places[w.ID]; pl != nil && pl.spare && pl.Machine != w.Nominated {
			p.drop(pl) // its scheduler did not see that room
		}
		if w.Blocked || m == nil || p.places[w.ID] != nil || len(p.places)-p.ahead >= maxPlaces || p.now < p.backoffs[w.ID].until ||
			!p.nominations.preempting(p.now, w.ID) {
			continue
		}
		q := p.demand(w, nil, nil)
		if q.empty() || q.on != "" && q.on != m.Name {
			continue
		}
		r := *p.room(m)
		r.leavingOnly = true
		if pl, ok := r.find(q); ok {
			pl.spare = len(pl.Stops) == 0
			pl.preempted = !pl.spare
			p.keep(pl.complete(q, Search{Known: 1, Machines: 1}, p.now))
		}
	}
}

// preempting reports whether a wish's scheduler is making room for it: it has as long for that as to use what is free, also once the last
// who was leaving that machine is gone, whose grace it waits for. Then the wish is like any other.
func (l nominations) preempting(now quantity.Instant, id ID) bool {
	n, nominated := l[id]
	return nominated && now < min(max(n.since, n.left).Add(schedulerBackoff), n.since.Add(stopTimeout))
}

// awaits reports whether any scheduler is making room.
func (l nominations) awaits(now quantity.Instant) bool {
	for id := range l { //sluice:sorted whether there is one
		if l.preempting(now, id) {
			return true
		}
	}
	return false
}

// leaves reports whether somebody else ends a tenant, and it is not overdue by more than its machine may take to notice.
func (t *Tenant) leaves(now quantity.Instant) bool {
	return t.Leaving && (t.End == 0 || now <= t.End.Add(overdue))
}

// keptForScheduler reports whether what a wish's scheduler frees for it is kept any longer: while the scheduler means that machine, and
// nobody else has taken it. Nothing was stopped for it, so nobody is to do without for what it left unused.
func (pl *Place) keptForScheduler(p *pass) bool {
	if p.wishes[pl.Wish].Nominated != pl.Machine || p.now > pl.made.Add(stopTimeout) {
		return false
	}
	m := p.machines[pl.Machine]
	if m != nil && slices.ContainsFunc(pl.Stops, func(id job.SliceID) bool { return m.tenant(id) != nil }) {
		return true
	}
	pl.freed = cmp.Or(pl.freed, p.now)
	if p.taken(pl) {
		delete(p.freeSince, pl.Wish)
		return false
	}
	return true
}
