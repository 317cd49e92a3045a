package reclaim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Costs is the current cost of stopping the subjob on a slice, as the owner of the slices knows it; false: it knows of no subjob there.
type Costs func(job.SliceID) (Cost, bool)

// room is a machine as a wish finds it: what is free, and which subjobs could be stopped.
type room struct {
	*Machine
	now quantity.Instant
	// when is the time for which room is sought, 0 for now; whatever has ended by then does not count.
	when quantity.Instant
	// places are those that are kept on it.
	places []*Place
	ask    Costs
	costs  map[job.SliceID]Cost
	// barred are slices whose subjobs may not be stopped this time. leavingOnly: nor may any other that is not leaving by itself.
	barred      []job.SliceID
	leavingOnly bool
	// bounded: the last search ended at a bound, so there may be a cheaper place, or one at all.
	bounded bool
}

func newRoom(m *Machine, now quantity.Instant, places []*Place, ask Costs) *room {
	return &room{Machine: m, now: now, places: places, ask: ask, costs: map[job.SliceID]Cost{}}
}

// unknownLeft is the remaining run time assumed of a subjob without a limit that costs does not know.
const unknownLeft = time.Hour

// cost of stopping the subjob on a slice. Of an unknown one all that it did is lost, of one that is leaving nothing.
func (r *room) cost(id job.SliceID) Cost {
	if r.leaving(id) {
		return Cost{}
	}
	c, known := r.costs[id]
	if known {
		return c
	}
	if r.ask != nil {
		c, known = r.ask(id)
	}
	if !known {
		c = Cost{Left: unknownLeft}
		if t := r.tenant(id); t != nil && t.Began != 0 {
			c.Lost = max(0, r.now.Sub(t.Began))
			if t.Limit > 0 {
				c.Left = max(0, t.Began.Add(t.Limit).Sub(r.now))
			}
		}
	}
	r.costs[id] = c
	return c
}

// tenant is our subjob on a slice; nil if there is none.
func (m *Machine) tenant(id job.SliceID) *Tenant {
	for i := range m.Tenants {
		if t := &m.Tenants[i]; t.Slice == id && id != "" {
			return t
		}
	}
	return nil
}

// notice is how long before its slice is taken back a subjob is warned; false if the slice may not be taken back.
func (m *Machine) notice(id job.SliceID) (time.Duration, bool) {
	i, there := m.slice(id)
	if !there {
		return 0, false
	}
	return m.Slices[i].Notice, true
}

// slice is the index of a slice that may be taken back.
func (m *Machine) slice(id job.SliceID) (int, bool) {
	return slices.BinarySearchFunc(m.Slices, id, func(s Slice, id job.SliceID) int { return cmp.Compare(s.ID, id) })
}

// stoppable reports whether the subjob on a slice may be stopped.
func (r *room) stoppable(id job.SliceID) bool {
	_, gives := r.notice(id)
	return gives && !slices.Contains(r.barred, id) && (!r.leavingOnly || r.leaving(id))
}

// leaving reports whether somebody else ends the subjob on a slice already.
func (r *room) leaving(id job.SliceID) bool {
	t := r.tenant(id)
	return t != nil && t.leaves(r.now)
}

// resource finds a resource by name; nil if the machine has none of it.
func (m *Machine) resource(name string) *Resource {
	for i := range m.Resources {
		if m.Resources[i].Name == name {
			return &m.Resources[i]
		}
	}
	return nil
}

// amount is the sum of the asks for a resource.
func amount(asks []Ask, name string) (n int64) {
	for _, a := range asks {
		if a.Resource == name {
			n += a.N
		}
	}
	return n
}

// gone reports whether what ends at end is gone by when.
func (r *room) gone(end quantity.Instant) bool { return r.when != 0 && end <= r.when }

// beingStopped reports whether the subjob on a slice is being stopped for a place already.
func (r *room) beingStopped(id job.SliceID) bool {
	return slices.ContainsFunc(r.places, func(pl *Place) bool { return (r.when != 0 || !pl.scheduled()) && slices.Contains(pl.Stops, id) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// freePool is what is free of a pool, indexed for many queries. A device with a subjob of ours that may be stopped is modelled as one more
// counter of one unit, so that stopping the subjob frees the device in the same way as the counters that it shares.
type freePool struct {
	*Pool
	left []int64
	// devices of the pool, by name; users are, for each counter, the devices with subjobs that may be stopped.
	devices []poolDevice
	users   [][]int
	// prices caches by the set of devices; chosen and key are scratch buffers of price.
	prices map[string]priced
	chosen []int
	key    []byte
	// bounded: the subjobs to stop for some set of devices may not be the cheapest.
	bounded bool
}

// poolDevice is a device of a freePool: its uses of counters, and its part, equal for devices that share counters directly or through
// others.
type poolDevice struct {
	*Device
	at   int
	uses []Use
	part int
	// taken: it is not available, since others use it, its subjob may not be stopped, or it is kept for a place. slice is that of our
	// subjob on it that may be stopped; empty: none.
	taken bool
	slice job.SliceID
	cost  Cost
}

// suffices reports whether uses fit in what is left.
func suffices(left []int64, uses []Use) bool {
	return !slices.ContainsFunc(uses, func(u Use) bool { return left[u.Counter] < u.N })
}

// take deducts uses, or with sign -1 returns them.
func take(left []int64, uses []Use, sign int64) {
	for _, u := range uses {
		left[u.Counter] -= sign * u.N
	}
}

type freePools []*freePool

// freePools are what is free of each pool of the machine.
func (r *room) freePools() (all freePools) {
	for i := range r.Pools {
		all = append(all, r.freePool(&r.Pools[i]))
	}
	return all
}

func (r *room) freePool(p *Pool) *freePool {
	x := &freePool{Pool: p, left: slices.Clone(p.Total), devices: make([]poolDevice, len(p.Devices))}
	for k := range p.Devices {
		d := &p.Devices[k]
		h := &x.devices[k]
		*h = poolDevice{Device: d, at: k, uses: d.Uses}
		if d.Holder == Nobody || r.gone(d.End) {
			continue
		}
		switch {
		case d.Holder == Ours && r.beingStopped(d.Slice): // on its way out
			continue
		case d.Holder == Ours && r.stoppable(d.Slice):
			h.slice, h.cost = d.Slice, r.cost(d.Slice)
			x.left = append(x.left, 1)
			h.uses = append(slices.Clip(h.uses), Use{len(x.left) - 1, 1})
		default:
			h.taken = true
		}
		take(x.left, h.uses, 1)
	}
	for _, pl := range r.places {
		if r.when == 0 && pl.scheduled() {
			continue
		}
		for _, at := range pl.Devices {
			if h := x.device(at); h != nil && !h.taken {
				h.taken = true
				take(x.left, h.uses, 1)
			}
		}
	}
	x.index()
	return x
}

// device finds a device; nil if it is not in the pool.
func (x *freePool) device(at DeviceRef) *poolDevice {
	k, there := x.find(at)
	if !there {
		return nil
	}
	return &x.devices[k]
}

// find is the index of a device; false if it is not in the pool.
func (p *Pool) find(at DeviceRef) (int, bool) {
	if at.Pool != p.Name {
		return 0, false
	}
	return slices.BinarySearchFunc(p.Devices, at.Device, func(d Device, name string) int { return cmp.Compare(d.Name, name) })
}

// index computes which devices use each counter, and which share counters.
func (x *freePool) index() {
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
			parent[root(u.Counter)] = root(h.uses[0].Counter)
			if h.slice != "" {
				x.users[u.Counter] = append(x.users[u.Counter], k)
			}
		}
	}
	for k := range x.devices {
		if h := &x.devices[k]; len(h.uses) > 0 {
			h.part = root(h.uses[0].Counter)
		}
	}
}

// priced is the cached price of a set of devices that share counters.
type priced struct {
	cost  stopCost
	stops []job.SliceID
	ok    bool
}
