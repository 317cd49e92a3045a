//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/quantity"
)

// Places are kept ahead of time for Pods that Kueue is about to admit: at once for a Workload that has its quota, and for the head of each ClusterQueue from when those who
// hold the quota must have ended. All of a Workload's Pods (up to mostCopies of each pod set) get a
// place, or none does.

const (
	// opens is how long slices are closed, with nothing cut short, for a Workload that has its quota and waits for another admission check.
	opens = 10 * time.Minute
	// recent is how long after getting its quota a Workload's Pods are expected.
	recent = 15 * time.Minute
	// mostCopies bounds the places kept ahead for one pod set of a Workload, mostEarly those for all, mostAhead the Workloads that are searched for in one pass.
	mostCopies = 64
	mostEarly  = 256
	mostAhead  = 2
)

// comes indexes Workloads whose Pods are to come: those with quota, and those that wait for it.
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

// expected is a Workload whose Pods are to come; missing counts, for each pod set, those without a place.
type expected struct {
	*limit
	// They want their places from from until until; 0: now. With open the time is not known yet (reclaim.open).
	from, until quantity.Instant
	open        bool
	missing     []int
}

// coming lists the Workloads whose Pods are to come and reconciles the places kept for them: Pods that have come take over places, and places that nobody needs are
// released. It also returns the machines on which anything changed.
func (p *pass) coming(waits map[types.UID]bool) (list []*expected, machines []string) {
	r := &p.reclaims
	has := map[types.UID]bool{}
	for _, l := range by[*limit](p.workloads, byComing, reserved) {
		has[l.UID] = true
		if done, tried := r.come[l.UID]; p.now <= l.coming.since.Add(recent) && (!tried || !done && l.coming.admitted) {
			list = append(list, &expected{limit: l, until: quantity.Never, open: !l.coming.admitted})
		}
	}
	maps.DeleteFunc(r.come, func(uid types.UID, _ bool) bool { return !has[uid] })
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

// missed leaves a queue's head alone for a while if the time of its place came and it was not admitted: another one was, or something else keeps it out.
func (p *pass) missed(g *reclaim, in bool) {
	if !in && g.later() && p.now >= g.from && p.now >= p.reclaims.shunned[g.of].until {
		p.reclaims.shun(p.now, g.of)
	}
}

// settle reconciles the places kept for one Workload with its Pods that exist, and sets how many it lacks. It returns the machines on which anything changed.
func (p *pass) settle(e *expected, kept []*reclaim, waits map[types.UID]bool) (machines []string) {
	r := &p.reclaims
	slices.SortFunc(kept, func(a, b *reclaim) int { return cmp.Compare(a.uid, b.uid) })
	var there []*tenant
	if e.from == 0 {
		there = p.podsOf(e.owned()...)
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
			case waits[t.UID] && len(of) > 0:
				g := of[0]
				drop(0)
				p.handOver(g, t)
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

// handOver gives a place that was kept ahead to a Pod that has come and wants it now.
func (p *pass) handOver(g *reclaim, t *tenant) {
	g.turn(p.now, &expected{until: quantity.Never})
	g.uid, g.waiter, g.kin, g.of, g.freed = t.UID, p.asksOfPools(t), p.kinOf(t), "", 0
	q := &quest{}
	q.claimed(p.Inventory, t.claims, g, nil) // up to the first claim that does not exist: only questOf looks at the rest again
	g.claims = q.claims
	p.reclaims.by[t.UID] = g
}

// is reports whether a Pod belongs to the pod set: it asks for the same.
func (x *part) is(t *tenant) bool {
	return maps.Equal(x.like.asks, t.asks) && len(x.claims)+len(x.templates) == t.requests
}

// turn changes when a place is wanted.
func (g *reclaim) turn(now quantity.Instant, e *expected) {
	if g.later() != (e.from != 0) || g.open && !e.open {
		g.at, g.freed, g.made = max(g.at, now.Add(g.notice)), 0, now
	}
	g.from, g.until, g.open = e.from, e.until, e.open
}

// heads are the first waiting Workload of each ClusterQueue, where it is known when as many devices as it wants come free.
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

// leave is when a Workload's last Pod is gone at the latest; it holds its quota until then.
func (p *pass) leave(l *limit) quantity.Instant {
	at := l.end
	for _, t := range p.podsOf(l.owned()...) {
		at = max(at, t.ends(p.limit))
	}
	return at
}

// before reports whether Kueue admits l before o: by priority, then age.
func (l *limit) before(o *limit) bool {
	return cmp.Or(cmp.Compare(o.coming.priority, l.coming.priority), cmp.Compare(l.coming.created, o.coming.created), cmp.Compare(l.UID, o.UID)) < 0
}

// devices counts what a Workload has or wants, by extended resource and device class. Of alternatives the first counts; a claim that its Pods share counts once.
func (p *pass) devices(l *limit) map[string]int64 {
	sum := map[string]int64{}
	add := func(wants []want, n int64) {
		for _, w := range wants {
			sum["class "+w.choices[0].class] += n * max(1, w.choices[0].n)
		}
	}
	named := map[string]bool{}
	for k := range l.coming.parts {
		x := &l.coming.parts[k]
		for name, n := range x.like.asks {
			sum[name] += int64(x.n) * n
		}
		for i, key := range x.templates {
			if t, there := get[*template](p.templates, key); there {
				add(p.numbered(i, t.wants), int64(x.n))
			}
		}
		for i, key := range x.claims {
			if c, there := get[*claim](p.claims, key); there && !named[key] {
				named[key] = true
				add(p.numbered(i, c.wants), 1)
			}
		}
	}
	return sum
}

// quest is what the next Pod of a pod set wants, less shared claims that get their devices in a kept place other than g, or in one of more; false if a claim or template does
// not exist.
func (p *pass) quest(x *part, g *reclaim, more []*reclaim) (q *quest, known bool) {
	q = &quest{like: x.like}
	for i, key := range x.templates {
		t, there := get[*template](p.templates, key)
		if !there {
			return q, false
		}
		q.wants = append(q.wants, p.numbered(len(x.claims)+i, t.wants)...)
	}
	return q, q.claimed(p.Inventory, x.claims, g, more)
}

// questOf is what the Pod for which a place is kept wants; false if that is not known any more.
func (p *pass) questOf(g *reclaim) (q *quest, known bool) {
	if g.of == "" {
		q = &quest{like: g.waiter}
		return q, q.claimed(p.Inventory, g.waiter.claims, g, nil)
	}
	for _, l := range by[*limit](p.workloads, byOwner, string(g.waiter.owner)) {
		if l.UID == g.of && l.coming != nil && g.part < len(l.coming.parts) {
			q, known = p.quest(&l.coming.parts[g.part], g, nil)
			q.like = g.waiter
			return q, known
		}
	}
	return nil, false
}
