//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
)

// Offer replaces the pools. What runs on slices that are no longer offered goes on; new slices appear with the next report. Errors are of kind Invalid and list everything
// that is wrong; the pools then stay as they were.
func (inv *Inventory) Offer(pools []Pool) error {
	if err := checkPools(pools); err != nil {
		return err
	}
	inv.mu.Lock()
	inv.opts.Pools = withDefaults(pools)
	for _, name := range inv.nodes.GetStore().ListKeys() {
		inv.dirty[name] = true
	}
	inv.mu.Unlock()
	inv.rouse()
	return nil
}

// withDefaults copies pools and fills in defaults.
func withDefaults(pools []Pool) []Pool {
	pools = slices.Clone(pools)
	for i := range pools {
		pools[i].Notice = cmp.Or(pools[i].Notice, defaultNotice)
	}
	return pools
}

// poolsOf lists the indexes of the pools that a machine belongs to.
func poolsOf(pools []Pool, m *machine) (list []int) {
	for i := range pools {
		of := true
		for key, value := range pools[i].Nodes {
			has, there := m.Labels[key]
			of = of && there && has == value
		}
		if of {
			list = append(list, i)
		}
	}
	return list
}

// names reports whether a pool names a driver. inv.mu is held.
func (inv *Inventory) names(driver string) bool {
	return slices.ContainsFunc(inv.opts.Pools, func(p Pool) bool {
		return slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Driver == driver })
	})
}

// asksOfPools is a Pod without the extended resources that no pool names, of which none can be given back: a copy, or t itself. inv.mu is held.
func (inv *Inventory) asksOfPools(t *tenant) *tenant {
	unnamed := func(name string, _ int64) bool {
		return !slices.ContainsFunc(inv.opts.Pools, func(p Pool) bool {
			return slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.Name == name })
		})
	}
	for name := range t.asks {
		if unnamed(name, 0) {
			own := *t
			own.asks = maps.Clone(t.asks)
			maps.DeleteFunc(own.asks, unnamed)
			return &own
		}
	}
	return t
}
