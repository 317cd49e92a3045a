//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	giveback "sluice.dev/sluice/internal/core/reclaim"
)

// ahead keeps places for Pods that are to come, of at most mostAhead Workloads in one pass, least recently tried first. It returns the machines on which anything changed.
func (p *pass) ahead(list []*expected) (machines []string) {
	r, looks := &p.reclaims, 0
	slices.SortStableFunc(list, func(a, b *expected) int { return cmp.Compare(r.pausing[a.UID], r.pausing[b.UID]) })
	for _, e := range list {
		lacks := 0
		for _, n := range e.missing {
			lacks += max(0, n)
		}
		if lacks == 0 || p.now < max(r.pausing[e.UID], r.shunned[e.UID].until) || r.early+lacks > mostEarly || r.avoids(p.now, e.owned()) {
			continue
		}
		if looks++; looks > mostAhead {
			p.rouse()
			break
		}
		places := p.placeAll(e)
		if len(places) == 0 {
			r.pausing[e.UID] = p.now.Add(rests)
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

// placeAll finds places for all Pods of a Workload that lack one, each next Pod where it costs least; nil unless all get one.
func (p *pass) placeAll(e *expected) (places []*reclaim) {
	names := sortedKeys(p.stands)
	if len(names) == 0 {
		return nil
	}
	more := map[string][]*reclaim{} // places found so far, by machine
	for k, n := range e.missing {
		x := &e.coming.parts[k]
		like := p.withFlavors(x)
		var q *quest
		var at []*candidate
		for i := range n {
			if i < 2 { // the first Pod gets the devices of shared claims, so the others want less
				known := false
				if q, known = p.quest(x, nil, places); !known {
					return nil
				}
				if q.like = like; q.nothing() {
					break // nothing that is offered here
				}
				if i == 0 || len(x.claims) > 0 {
					at = p.candidates(q, e, names, n-i, more)
				}
			}
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
			own := *like
			own.UID = types.UID(fmt.Sprintf("%s/%d", e.UID, p.reclaims.number))
			g.uid, g.waiter, g.claims, g.of, g.part, g.from, g.until, g.open, g.made = own.UID, &own, q.claims, e.UID, k, e.from, e.until, e.open, p.now
			if g.later() {
				g.closes = best.room.closes(g)
			}
			places = append(places, g)
			more[g.machine] = append(more[g.machine], g)
			best.look(q, more[g.machine])
		}
	}
	return places
}

// withFlavors is what the Pods of a pod set will be like: Kueue adds the node labels of the ResourceFlavor that their quota is of.
func (p *pass) withFlavors(x *part) *tenant {
	like := *p.asksOfPools(x.like)
	like.nodes = maps.Clone(like.nodes)
	for _, f := range x.flavors {
		if a, there := get[*alias](p.flavors, f); there && len(a.nodes) > 0 {
			if like.nodes == nil {
				like.nodes = map[string]string{}
			}
			maps.Copy(like.nodes, a.nodes)
		}
	}
	return &like
}

// candidate is a machine, and the place the next Pod would get there; nil: none any more.
type candidate struct {
	room *room
	base []*reclaim
	g    *reclaim
	cost giveback.Cost
}

func (c *candidate) look(q *quest, more []*reclaim) {
	c.room.gives = append(slices.Clip(c.base), more...)
	g, cost, ok := c.room.find(q.like, q.wants)
	if c.g, c.cost = g, cost; !ok {
		c.g = nil
	}
}

// candidates are machines with a place for one of n Pods, at most enough of them; the search ends early once n places cost nothing.
func (p *pass) candidates(q *quest, e *expected, names []string, n int, more map[string][]*reclaim) (list []*candidate) {
	if q.on != "" {
		names = []string{q.on}
	}
	free, from := 0, uint64(crc32.ChecksumIEEE([]byte(e.UID)))
	for i := range min(len(names), mostMachines) {
		m, there := get[*machine](p.nodes, names[(from+uint64(i))%uint64(len(names))])
		if !there || !q.like.mayRunOn(m) {
			continue
		}
		r := p.room(m)
		r.when = e.from
		c := &candidate{room: r, base: r.gives}
		if c.look(q, more[m.Name]); c.g == nil {
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

// closes are the slices that are not for sale from when a place is wanted: those cut short for it, and those that it takes or shares counters with.
func (r *room) closes(g *reclaim) []job.SliceID {
	list := slices.Clone(g.slices)
	for _, name := range sortedKeys(g.waiter.asks) {
		list = append(list, r.ordinals(name, g)...)
	}
	pools, _ := gather(r.offers, r.published)
	for _, p := range pools {
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
		layout := p.layout(r.machine, r.pools, r.class, nil)
		for id, h := range p.held(layout, has) {
			if h.Kind == protocol.ForReclaim {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ordinals are the slices of an extended resource that a Pod takes beyond those cut short for it: the highest that are free by then, as seat would give it.
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

// busy reports whether a slice is held at when: by a subjob of ours, by others, or for a kept place.
func (r *room) busy(id job.SliceID) bool {
	return slices.ContainsFunc(r.tenants, func(t *tenant) bool { return t.ours && t.slice == id && !r.gone(t.ends(r.limits)) }) ||
		slices.ContainsFunc(r.gives, func(g *reclaim) bool { return slices.Contains(g.shuts(), id) }) ||
		slices.ContainsFunc(r.told[id], func(h protocol.Reservation) bool {
			return h.Kind != protocol.ForServing && h.Start <= r.when && !r.gone(h.End)
		})
}
