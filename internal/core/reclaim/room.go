package reclaim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Costs says what stopping the subjob on a slice costs now, as the ledger of its slices knows; false: it knows nothing of one there.
type Costs func(job.SliceID) (Cost, bool)

// room is a machine as a wish finds it: what is free, and which subjobs could be stopped.
type room struct {
	*Machine
	now quantity.Instant
	// when is the time for which room is sought, 0 for now; who is gone by then does not count.
	when quantity.Instant
	// gives are the places that are kept on it.
	gives []*Place
	ask   Costs
	costs map[job.SliceID]Cost
}

func newRoom(m *Machine, now quantity.Instant, gives []*Place, ask Costs) *room {
	return &room{Machine: m, now: now, gives: gives, ask: ask, costs: map[job.SliceID]Cost{}}
}

// unknownLeft is the time left that is assumed of a subjob without a limit of which the ledger knows nothing.
const unknownLeft = time.Hour

// cost of stopping the subjob on a slice. Of one of which the ledger knows nothing all that it did is lost.
func (r *room) cost(id job.SliceID) Cost {
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

// tenant is our own on a slice; nil: there is none.
func (m *Machine) tenant(id job.SliceID) *Tenant {
	for i := range m.Tenants {
		if t := &m.Tenants[i]; t.Slice == id && id != "" {
			return t
		}
	}
	return nil
}

// notice is how long before it is taken a slice's subjob is told; false: it is not taken.
func (m *Machine) notice(id job.SliceID) (time.Duration, bool) {
	i, there := slices.BinarySearchFunc(m.Slices, id, func(s Slice, id job.SliceID) int { return cmp.Compare(s.ID, id) })
	if !there {
		return 0, false
	}
	return m.Slices[i].Notice, true
}

// resource finds one by its name; nil: the machine has none of it.
func (m *Machine) resource(name string) *Resource {
	for i := range m.Resources {
		if m.Resources[i].Name == name {
			return &m.Resources[i]
		}
	}
	return nil
}

// of is how much is asked of a resource.
func of(asks []Ask, name string) (n int64) {
	for _, a := range asks {
		if a.Resource == name {
			n += a.N
		}
	}
	return n
}

// gone reports whether what ends then is gone by when.
func (r *room) gone(end quantity.Instant) bool { return r.when != 0 && end <= r.when }

// given reports whether a slice is being given back already.
func (r *room) given(id job.SliceID) bool {
	return slices.ContainsFunc(r.gives, func(g *Place) bool { return (r.when != 0 || !g.later()) && slices.Contains(g.Cut, id) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// remains is what is left of a pool, indexed for many queries. A device with a subjob of ours that may be stopped is one more counter, of
// one unit, so that stopping the subjob frees the device as it frees what the device shares.
type remains struct {
	*Pool
	left []int64
	// devices of the pool, by name; users are, for each counter, the devices with subjobs that may be stopped.
	devices []held
	users   [][]int
	// prices caches by the set of devices; chosen and key are scratch buffers of price.
	prices map[string]priced
	chosen []int
	key    []byte
}

// held is a device of remains: its uses of counters, and its part, equal for devices that share counters directly or through others.
type held struct {
	*Device
	at   int
	uses []Use
	part int
	// taken: it can't be had, since others have it, a subjob that may not be stopped, or it is kept for a place. slice is that of our
	// subjob on it that may be stopped; empty: none.
	taken bool
	slice job.SliceID
	cost  Cost
}

// bear reports whether enough is left for a device.
func (x *remains) bear(d *held) bool { return bears(x.left, d.uses) }

func bears(left []int64, uses []Use) bool {
	return !slices.ContainsFunc(uses, func(u Use) bool { return left[u.Counter] < u.N })
}

// take deducts uses.
func take(left []int64, uses []Use, sign int64) {
	for _, u := range uses {
		left[u.Counter] -= sign * u.N
	}
}

type remainders []*remains

// lefts computes what is left of each pool of the machine.
func (r *room) lefts() (all remainders) {
	for i := range r.Pools {
		all = append(all, r.remains(&r.Pools[i]))
	}
	return all
}

func (r *room) remains(p *Pool) *remains {
	x := &remains{Pool: p, left: slices.Clone(p.Total), devices: make([]held, len(p.Devices))}
	for k := range p.Devices {
		d := &p.Devices[k]
		h := &x.devices[k]
		*h = held{Device: d, at: k, uses: d.Uses}
		if d.Holder == Nobody || r.gone(d.End) {
			continue
		}
		_, gives := r.notice(d.Slice)
		switch {
		case d.Holder == Ours && r.given(d.Slice): // on its way out
			continue
		case d.Holder == Ours && gives:
			h.slice, h.cost = d.Slice, r.cost(d.Slice)
			x.left = append(x.left, 1)
			h.uses = append(slices.Clip(h.uses), Use{len(x.left) - 1, 1})
		default:
			h.taken = true
		}
		take(x.left, h.uses, 1)
	}
	for _, g := range r.gives {
		if r.when == 0 && g.later() {
			continue
		}
		for _, at := range g.Devices {
			if h := x.named(at); h != nil && !h.taken {
				h.taken = true
				take(x.left, h.uses, 1)
			}
		}
	}
	x.index()
	return x
}

// named finds a device; nil: it is not of the pool.
func (x *remains) named(at At) *held {
	k, there := x.find(at)
	if !there {
		return nil
	}
	return &x.devices[k]
}

// find is the index of a device; false: it is not of the pool.
func (p *Pool) find(at At) (int, bool) {
	if at.Pool != p.Name {
		return 0, false
	}
	return slices.BinarySearchFunc(p.Devices, at.Device, func(d Device, name string) int { return cmp.Compare(d.Name, name) })
}

// index finds who uses each counter, and which devices share counters.
func (x *remains) index() {
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
	cost  toll
	stops []job.SliceID
	ok    bool
}
