//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/giveback"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Places are kept ahead of time for Pods that Kueue is about to let come: for those of a Workload that has its quota at once, and for those of the first that waits in its
// queue from when on what holds that quota has to end. All of a Workload's Pods have a place, or none has.

const (
	// opens is how long a place is kept without cutting anything short for a Workload that has its quota, and waits for something else.
	opens = 10 * time.Minute
	// recent is how long after it got its quota the Pods of a Workload are expected.
	recent = 15 * time.Minute
	// mostCopies bounds for how many Pods of one Workload places are kept at once, mostEarly for how many of all of them, mostAhead how many Workloads are looked at in one look.
	mostCopies = 64
	mostEarly  = 256
	mostAhead  = 2
)

// comes is the index of Workloads that are to come: those with quota, and those that wait for some.
func (l *limit) comes() []string {
	switch {
	case l.coming == nil:
		return nil
	case l.coming.since != 0:
		return []string{reserved}
	}
	return []string{pending}
}

const (
	byComing = "coming"
	reserved = "reserved"
	pending  = "pending"
)

// expected is a Workload whose Pods are to come: how many of each of its parts have no place yet.
type expected struct {
	*limit
	// from is when they will want it, 0 for now, and until when.
	from, until quantity.Instant
	open        bool
	missing     []int
}

// coming lists the Workloads whose Pods are to come, and brings what is kept for them in line: Pods that are there and wait have the places that were kept for them before they
// came; what nobody needs any more is let go. It returns the machines on which that changes anything too.
func (p *pass) coming(waiters []*tenant) (list []*expected, machines []string) {
	r := &p.reclaims
	has := map[types.UID]bool{}
	for _, l := range by[*limit](p.workloads, byComing, reserved) {
		has[l.UID] = true
		if done, tried := r.come[l.UID]; p.now <= l.coming.since.Add(recent) && (!tried || !done && l.coming.admitted) {
			list = append(list, &expected{limit: l, until: quantity.Never, open: !l.coming.admitted})
		}
	}
	maps.DeleteFunc(r.come, func(uid types.UID, _ bool) bool { return !has[uid] })
	waits := map[types.UID]bool{}
	for _, t := range waiters {
		waits[t.UID] = true
	}
	list = append(list, p.heads()...)
	slices.SortFunc(list, func(a, b *expected) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.UID, b.UID)) })
	of := map[types.UID]*expected{}
	kept := map[types.UID][]*reclaim{}
	for _, g := range r.by {
		if g.of != "" {
			kept[g.of] = append(kept[g.of], g)
		}
	}
	for _, e := range list {
		of[e.UID] = e
		machines = append(machines, p.settle(e, kept[e.UID], waits)...)
	}
	for uid, all := range kept {
		for _, g := range all {
			if of[uid] == nil {
				p.missed(g, has[uid])
				delete(r.by, g.uid)
				machines = append(machines, g.machine)
			}
		}
	}
	return list, machines
}

// missed notes of a place for the first of a queue that its time came, and it was not let in: others were, or something else keeps it out.
func (p *pass) missed(g *reclaim, in bool) {
	if !in && g.later() && p.now >= g.from && p.now >= p.reclaims.shunned[g.of].until {
		p.reclaims.shun(p.now, g.of)
	}
}

// settle says how many places a Workload lacks, beside those that are kept for it and those of its Pods that are there.
func (p *pass) settle(e *expected, kept []*reclaim, waits map[types.UID]bool) (machines []string) {
	r := &p.reclaims
	slices.SortFunc(kept, func(a, b *reclaim) int { return cmp.Compare(a.uid, b.uid) })
	var there []*tenant
	if e.from == 0 {
		there = p.podsOf(e.of)
	}
	slices.SortFunc(there, func(a, b *tenant) int { return cmp.Compare(a.UID, b.UID) })
	all := true
	for k := range e.coming.parts {
		x := &e.coming.parts[k]
		of := slices.DeleteFunc(slices.Clone(kept), func(g *reclaim) bool { return g.part != k })
		drop := func(i int) {
			delete(r.by, of[i].uid)
			machines = append(machines, of[i].machine)
			of = slices.Delete(of, i, i+1)
		}
		n, has := x.n, 0
		for _, t := range there {
			if n == 0 || !x.is(t) {
				continue
			}
			i := slices.IndexFunc(of, func(g *reclaim) bool { return g.machine == t.machine })
			switch {
			case t.machine != "":
				has++
				if n--; i >= 0 {
					drop(i)
				}
			case r.by[t.UID] != nil:
				n--
			case waits[t.UID] && len(of) > 0: // what was kept for one that was to come is its own
				g := of[0]
				drop(0)
				g.uid, g.waiter, g.of, g.freed = t.UID, t, "", 0
				r.by[t.UID] = g
				n--
			}
		}
		all = all && has >= x.n
		for n < len(of) {
			drop(len(of) - 1)
		}
		for _, g := range of {
			if e.from > g.from {
				p.missed(g, false)
			}
			if g.from != e.from || g.open != e.open {
				g.turn(p.now, e)
				machines = append(machines, g.machine)
			}
		}
		e.missing = append(e.missing, min(n, mostCopies)-len(of))
	}
	if all && e.from == 0 {
		r.come[e.UID] = true
	}
	return machines
}

// is says whether a Pod is one of a part's: it asks for the same.
func (x *part) is(t *tenant) bool {
	return maps.Equal(x.like.asks, t.asks) && len(x.claims)+len(x.templates) == t.requests
}

// turn has a place be wanted at another time than before.
func (g *reclaim) turn(now quantity.Instant, e *expected) {
	if g.later() != (e.from != 0) || g.open && !e.open {
		g.at, g.freed, g.made = max(g.at, now.Add(g.notice)), 0, now
	}
	g.from, g.until, g.open = e.from, e.until, e.open
}

// heads are the first Workloads that wait, one of each ClusterQueue, where it is known when as many devices as they want come free there.
func (p *pass) heads() (list []*expected) {
	first := map[string]*limit{}
	for _, l := range by[*limit](p.workloads, byComing, pending) {
		q, there := get[*alias](p.queues, l.coming.queue)
		if !there || p.now < p.reclaims.shunned[l.UID].until {
			continue
		}
		if h := first[q.cluster]; h == nil || l.before(h) {
			first[q.cluster] = l
		}
	}
	if len(first) == 0 {
		return nil
	}
	type holder struct {
		*limit
		leaves quantity.Instant
	}
	holders := map[string][]holder{}
	for _, l := range by[*limit](p.workloads, byComing, reserved) {
		if first[l.coming.cluster] == nil || l.end == quantity.Never {
			continue
		}
		if h := (holder{l, p.leave(l)}); p.now <= h.leaves.Add(patience) {
			holders[l.coming.cluster] = append(holders[l.coming.cluster], h)
		}
	}
	for _, cluster := range sortedKeys(first) {
		l := first[cluster]
		lacks := p.devices(l)
		all := holders[cluster]
		slices.SortFunc(all, func(a, b holder) int { return cmp.Or(cmp.Compare(a.leaves, b.leaves), cmp.Compare(a.UID, b.UID)) })
		for _, h := range all {
			for of, n := range p.devices(h.limit) {
				lacks[of] -= n
			}
			if done := !slices.ContainsFunc(slices.Collect(maps.Values(lacks)), func(n int64) bool { return n > 0 }); done {
				e := &expected{limit: l, from: h.leaves, until: quantity.Never}
				if l.most > 0 {
					e.until = e.from.Add(l.most)
				}
				list = append(list, e)
				break
			}
		}
	}
	return list
}

// leave is when the last Pod of a Workload is gone at the latest: its quota is its own until then.
func (p *pass) leave(l *limit) quantity.Instant {
	at := l.end
	for _, t := range p.podsOf(l.of) {
		at = max(at, t.ends(p.limit))
	}
	return at
}

// before says whether a Workload is let in before another.
func (l *limit) before(o *limit) bool {
	return cmp.Or(cmp.Compare(o.coming.priority, l.coming.priority), cmp.Compare(l.coming.created, o.coming.created), cmp.Compare(l.UID, o.UID)) < 0
}

// devices are how many a Workload has or wants, of each resource and class.
func (p *pass) devices(l *limit) map[string]int64 {
	sum := map[string]int64{}
	for k := range l.coming.parts {
		x := &l.coming.parts[k]
		for name, n := range x.like.asks {
			sum[name] += int64(x.n) * n
		}
		wants, _ := p.wantsIn(x)
		for _, w := range wants {
			sum["class "+w.class] += int64(x.n) * w.n
		}
	}
	return sum
}

// wantsIn are the devices that each Pod of a part wants; false: what says so is not there.
func (p *pass) wantsIn(x *part) (wants []want, known bool) {
	for _, key := range x.templates {
		t, there := get[*template](p.templates, key)
		if !there {
			return nil, false
		}
		wants = append(wants, t.wants...)
	}
	more, known := p.wants(&tenant{claims: x.claims})
	return append(wants, more...), known
}

// wantsOf are the devices that whoever a place is kept for wants.
func (p *pass) wantsOf(g *reclaim) ([]want, bool) {
	if g.of == "" {
		return p.wants(g.waiter)
	}
	for _, l := range by[*limit](p.workloads, byOwner, string(g.waiter.owner)) {
		if l.UID == g.of && l.coming != nil && g.part < len(l.coming.parts) {
			return p.wantsIn(&l.coming.parts[g.part])
		}
	}
	return nil, false
}

// ahead finds places for Pods that are to come, those of a few Workloads in one look. It returns the machines on which that changes anything.
func (p *pass) ahead(list []*expected) (machines []string) {
	r, looks := &p.reclaims, 0
	for _, e := range list {
		lacks := 0
		for _, n := range e.missing {
			lacks += max(0, n)
		}
		if lacks == 0 || p.now < r.rests[e.UID] || p.now < max(r.shunned[first(e.of, e.UID)].until, r.shunned[e.UID].until) || r.early+lacks > mostEarly {
			continue
		}
		if looks++; looks > mostAhead {
			p.rouse()
			break
		}
		places := p.placeAll(e)
		if len(places) == 0 {
			r.rests[e.UID] = p.now.Add(rests)
			continue
		}
		for _, g := range places {
			r.by[g.uid] = g
			r.early++
			machines = append(machines, g.machine)
			delete(p.rooms, g.machine)
		}
	}
	return machines
}

// placeAll finds a place for every Pod of a Workload that lacks one: the next is always where it costs least. None where not all have one.
func (p *pass) placeAll(e *expected) (places []*reclaim) {
	names := sortedKeys(p.stands)
	if len(names) == 0 {
		return nil
	}
	from := uint64(crc32.ChecksumIEEE([]byte(e.UID)))
	more := map[string][]*reclaim{} // on each machine
	for k, n := range e.missing {
		x := &e.coming.parts[k]
		wants, known := p.wantsIn(x)
		if n <= 0 {
			continue
		}
		like := *p.asksOfPools(x.like)
		if !known || slices.ContainsFunc(wants, func(w want) bool { return !p.knows(w.class) }) {
			return nil
		}
		if len(wants)+len(like.asks) == 0 {
			continue // nothing that is offered
		}
		like.nodes = maps.Clone(like.nodes)
		for _, f := range x.flavors {
			if a, there := get[*alias](p.flavors, f); there && len(a.nodes) > 0 {
				if like.nodes == nil {
					like.nodes = map[string]string{}
				}
				maps.Copy(like.nodes, a.nodes)
			}
		}
		at := p.candidates(&like, wants, e, names, from, n, more)
		for range n {
			var best *candidate
			for _, c := range at {
				if c.g != nil && (best == nil || c.cost.Compare(best.cost) < 0) {
					best = c
				}
			}
			if best == nil {
				return nil
			}
			g := best.g
			p.reclaims.number++
			own := like
			own.UID = types.UID(fmt.Sprintf("%s/%d", e.UID, p.reclaims.number))
			g.uid, g.waiter, g.of, g.part, g.from, g.until, g.open, g.made = own.UID, &own, e.UID, k, e.from, e.until, e.open, p.now
			if g.later() {
				g.closes = best.room.closes(g)
			}
			places = append(places, g)
			more[g.machine] = append(more[g.machine], g)
			best.look(&like, wants, more[g.machine])
		}
	}
	return places
}

// candidate is a machine, and what the next Pod would be given there; nil: nothing.
type candidate struct {
	room *room
	base []*reclaim
	g    *reclaim
	cost giveback.Cost
}

func (c *candidate) look(like *tenant, wants []want, more []*reclaim) {
	c.room.gives = append(slices.Clip(c.base), more...)
	g, cost, ok := c.room.find(like, wants)
	if c.g, c.cost = g, cost; !ok {
		c.g = nil
	}
}

// candidates are the machines on which Pods may run, as many as are enough. With places that cost nothing for all of them no more is looked for.
func (p *pass) candidates(like *tenant, wants []want, e *expected, names []string, from uint64, n int, more map[string][]*reclaim) (list []*candidate) {
	free := 0
	for i := range min(len(names), mostMachines) {
		m, there := get[*machine](p.nodes, names[(from+uint64(i))%uint64(len(names))])
		if !there || !like.mayRunOn(m) {
			continue
		}
		r := p.room(m)
		r.when = e.from
		c := &candidate{room: r, base: r.gives}
		if c.look(like, wants, more[m.Name]); c.g == nil {
			continue
		}
		list = append(list, c)
		if len(c.g.slices) == 0 {
			free++
		}
		if len(list) >= enough || free >= n {
			break
		}
	}
	return list
}

// closes are the slices that nobody is to have from when on a place is wanted: those that are cut short for it, and those that it takes, or takes something of.
func (r *room) closes(g *reclaim) []job.SliceID {
	list := slices.Clone(g.slices)
	for _, name := range sortedKeys(g.waiter.asks) {
		list = append(list, r.ordinals(name, g)...)
	}
	for _, p := range gather(r.offers, r.published) {
		has := r.stays(&p)
		maps.DeleteFunc(has, func(_ string, s stay) bool { return s.ours || r.gone(s.end) })
		mine := false
		for _, o := range append(slices.Clip(r.gives), g) {
			for _, at := range o.devices {
				if at.pooled == p.pooled {
					has[at.device] = stay{end: quantity.Never, waits: true}
					mine = mine || o == g
				}
			}
		}
		if !mine {
			continue
		}
		layout, _ := p.layout(r.machine, r.pools)
		for id, h := range p.held(layout, has) {
			if h.Kind == protocol.ForReclaim {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ordinals are as many slices of an extended resource as a Pod asks for beyond those that are cut short for it: the highest of those that are free by then.
func (r *room) ordinals(name string, g *reclaim) (list []job.SliceID) {
	n := int(g.waiter.asks[name])
	for _, i := range r.machine.pools {
		for k := range r.pools[i].Resources {
			if r.pools[i].Resources[k].Name != name {
				continue
			}
			all, _ := r.pools[i].Resources[k].counted(r.machine, r.counts[name])
			for _, s := range all {
				if slices.Contains(g.slices, s.ID) {
					n--
				}
			}
			for i := len(all) - 1; i >= 0 && n > 0; i-- {
				if id := all[i].ID; !r.busy(id) && !slices.Contains(g.slices, id) {
					list = append(list, id)
					n--
				}
			}
			return list
		}
	}
	return list
}

// busy says whether somebody holds a slice beyond when it is looked at, or will: one of ours that stays, others, or whoever it is kept for.
func (r *room) busy(id job.SliceID) bool {
	return slices.ContainsFunc(r.tenants, func(t *tenant) bool { return t.ours && t.slice == id && !r.gone(t.ends(r.limits)) }) ||
		slices.ContainsFunc(r.gives, func(g *reclaim) bool { return slices.Contains(g.shuts(), id) }) ||
		slices.ContainsFunc(r.told[id], func(h protocol.Reservation) bool {
			return h.Kind != protocol.ForServing && h.Start <= r.when && !r.gone(h.End)
		})
}
