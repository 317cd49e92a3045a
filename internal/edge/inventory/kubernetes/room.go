//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	giveback "sluice.dev/sluice/internal/core/reclaim"
)

// room is a machine seen by a Pod that waits: what is free, and which subjobs could be stopped.
type room struct {
	*scene
	now quantity.Instant
	// when is the time for which room is sought, 0 for now; holds that end by then do not count.
	when   quantity.Instant
	costs  func(job.SliceID) giveback.Cost
	notice func(job.SliceID) (time.Duration, bool)
	// told is what was last reported of others' holds.
	told map[job.SliceID][]protocol.Reservation
	// published are the drivers' pools on it, as of when each was last complete.
	published map[pooled]published
}

func (p *pass) room(m *machine) *room {
	r := &room{scene: p.scene(m), now: p.now, told: p.told}
	r.likely = nil // learned ends are estimates, and no reason to cut a subjob short
	x := p.Inventory.stands[m.Name]
	if x != nil {
		r.published = x.published
	}
	r.notice = func(id job.SliceID) (time.Duration, bool) {
		if x == nil || x.pool[id] == nil || x.pool[id].Keeps {
			return 0, false
		}
		return x.pool[id].Notice, true
	}
	costs := p.costsOn(r.scene)
	r.costs = func(id job.SliceID) giveback.Cost { return costs[id] }
	return r
}

// costsOn is the cost of stopping each of our Pods on a machine: by default all that it did is lost.
func (p *pass) costsOn(s *scene) map[job.SliceID]giveback.Cost {
	costs := map[job.SliceID]giveback.Cost{}
	var ids []job.SliceID
	for _, t := range s.tenants {
		if !t.ours {
			continue
		}
		c := giveback.Cost{Left: time.Hour}
		if t.started != 0 {
			c.Lost = max(0, p.now.Sub(t.started))
			if t.active > 0 {
				c.Left = max(0, t.started.Add(t.active).Sub(p.now))
			}
		}
		costs[t.slice], ids = c, append(ids, t.slice)
	}
	if p.Inventory.costs != nil && len(ids) > 0 {
		maps.Copy(costs, p.Inventory.costs(ids))
	}
	return costs
}

// find says what to give back on the machine for a Pod, and the cost; false if even stopping all that may be stopped would not do.
func (r *room) find(t *tenant, wants []want) (g *reclaim, cost giveback.Cost, ok bool) {
	g = &reclaim{uid: t.UID, waiter: t, machine: r.Name, counted: len(t.asks) > 0}
	if cost, ok = r.findCounted(t, g); !ok {
		return nil, cost, false
	}
	c, found := r.lefts().devices(r, wants, g)
	if !found {
		return nil, cost, false
	}
	cost = cost.Plus(c)
	slices.Sort(g.slices)
	notice := time.Duration(0)
	for _, id := range g.slices {
		n, _ := r.notice(id)
		notice = max(notice, n)
	}
	g.at, g.notice = r.now.Add(notice), notice
	return g, cost, true
}

// findCounted chooses the cheapest subjobs to stop for the extended resources that a Pod lacks.
func (r *room) findCounted(t *tenant, g *reclaim) (cost giveback.Cost, ok bool) {
	for _, name := range sortedKeys(t.asks) {
		short := t.asks[name] - r.counts[name]
		var pieces []giveback.Piece
		var ids []job.SliceID
		for _, other := range r.tenants {
			if r.gone(other.ends(r.limits)) {
				continue
			}
			short += other.asks[name]
			_, gives := r.notice(other.slice)
			if other.ours && other.asks[name] > 0 && gives && !r.given(other.slice) {
				pieces, ids = append(pieces, giveback.Piece{Frees: []int64{other.asks[name]}, Cost: r.costs(other.slice)}), append(ids, other.slice)
			}
		}
		for _, before := range r.gives { // they come first: what is freed for them is not free
			if r.when == 0 && before.later() {
				continue
			}
			if before.counted {
				short += before.waiter.asks[name]
			}
			for _, other := range r.tenants {
				if other.ours && !r.gone(other.ends(r.limits)) && slices.Contains(before.slices, other.slice) {
					short -= other.asks[name]
				}
			}
		}
		chosen, c, enough := giveback.Choose([]int64{short}, pieces)
		if !enough {
			return cost, false
		}
		cost = cost.Plus(c)
		for _, i := range chosen {
			g.slices = append(g.slices, ids[i])
		}
	}
	return cost, true
}

// gone reports whether what ends then is gone by when.
func (r *room) gone(end quantity.Instant) bool { return r.when != 0 && end <= r.when }

// given reports whether a slice is being given back already.
func (r *room) given(id job.SliceID) bool {
	return slices.ContainsFunc(r.gives, func(g *reclaim) bool { return (r.when != 0 || !g.later()) && slices.Contains(g.slices, id) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// remains is what is left of a driver's pool on a machine, indexed for many queries. Counters are numbered; a device with a subjob of ours that may be stopped is one more
// counter, of one unit, so that stopping the subjob frees the device as it frees what the device shares.
type remains struct {
	published
	left []int64
	// devices of the pool, by name; users are, for each counter, the devices with subjobs that may be stopped.
	devices []held
	users   [][]int
	// prices caches by the set of devices; chosen and key are scratch buffers of price.
	prices map[string]priced
	chosen []int
	key    []byte
}

// held is a device of remains: its index, its uses of numbered counters, and its part, equal for devices that share counters directly or through others.
type held struct {
	*device
	at   int
	uses []use
	part int
	// taken: it can't be had, since others have it, a subjob that may not be stopped, or it is kept for a Pod. slice is our subjob's on it that may be stopped at cost; empty: none.
	taken bool
	slice job.SliceID
	cost  giveback.Cost
}

type use struct {
	counter int
	n       int64
}

// bear reports whether enough is left for a device.
func (x *remains) bear(d *held) bool {
	return !slices.ContainsFunc(d.uses, func(u use) bool { return x.left[u.counter] < u.n })
}

// take deducts what a device uses.
func (x *remains) take(d *held) {
	for _, u := range d.uses {
		x.left[u.counter] -= u.n
	}
}

type remainders []*remains

// lefts computes what is left of each pool of the machine.
func (r *room) lefts() (all remainders) {
	list, _ := gather(r.offers, r.published)
	for i := range list {
		all = append(all, r.remains(&list[i]))
	}
	return all
}

func (r *room) remains(p *published) *remains {
	x := &remains{published: *p}
	numbers := map[[2]string]int{}
	number := func(k [2]string) int {
		n, there := numbers[k]
		if !there {
			n = len(x.left)
			numbers[k] = n
			x.left = append(x.left, p.total[k])
		}
		return n
	}
	at := map[string]int{}
	for k := range p.devices {
		d := &p.devices[k]
		h := held{device: d, at: k}
		for _, u := range d.uses {
			h.uses = append(h.uses, use{number([2]string{u.set, u.counter}), u.n})
		}
		at[d.name] = len(x.devices)
		x.devices = append(x.devices, h)
	}
	layout := p.layout(r.machine, r.pools, r.class, nil)
	sold := map[string]job.SliceID{}
	for i := range layout {
		sold[layout[i].name] = layout[i].slice.ID
	}
	for name, s := range r.stays(p) {
		k, there := at[name]
		if !there || r.gone(s.end) {
			continue
		}
		h := &x.devices[k]
		id := sold[name]
		_, gives := r.notice(id)
		switch {
		case s.ours && r.given(id): // on its way out
			continue
		case s.ours && gives:
			h.slice, h.cost = id, r.costs(id)
			x.left = append(x.left, 1)
			h.uses = append(h.uses, use{len(x.left) - 1, 1})
		default:
			h.taken = true
		}
		x.take(h)
	}
	for _, g := range r.gives {
		if r.when == 0 && g.later() {
			continue
		}
		for _, kept := range g.devices {
			if k, there := at[kept.device]; there && kept.pooled == p.pooled && !x.devices[k].taken {
				x.devices[k].taken = true
				x.take(&x.devices[k])
			}
		}
	}
	x.users, x.prices = make([][]int, len(x.left)), map[string]priced{}
	parent := make([]int, len(x.left)) // union-find over counters
	for c := range parent {
		parent[c] = c
	}
	root := func(c int) int {
		for ; parent[c] != c; c = parent[c] {
			parent[c] = parent[parent[c]]
		}
		return c
	}
	for k := range x.devices {
		h := &x.devices[k]
		for _, u := range h.uses {
			parent[root(u.counter)] = root(h.uses[0].counter)
			if h.slice != "" {
				x.users[u.counter] = append(x.users[u.counter], k)
			}
		}
	}
	for k := range x.devices {
		if h := &x.devices[k]; len(h.uses) > 0 {
			h.part = root(h.uses[0].counter)
		}
	}
	return x
}

// means says whether a choice selects a device, by its class's and claim's selectors as far as they are understood, and at most maybe if the choice is odd; for a class
// that was not seen, by what pools say of it.
func (r *room) means(w *choice, driver string, d *device) meant {
	m := w.only.means(driver, d)
	if w.odd {
		m = m.and(maybe)
	}
	if c, there := r.class(w.class); there {
		return m.and(c.only.means(driver, d))
	}
	for i := range r.pools {
		if slices.ContainsFunc(r.pools[i].Classes, func(c Class) bool { return c.Name == w.class && c.matches(driver, d) }) {
			return m
		}
	}
	return isNot
}
