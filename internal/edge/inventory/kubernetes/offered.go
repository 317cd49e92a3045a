//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
)

// Offer has these pools offered from now on, in place of those of before. What runs on slices that are offered no more goes on; what is new is there once it was looked at.
// Errors are of kind Invalid, and list everything that is wrong: then those of before stand.
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

// withDefaults is a copy of pools in which nothing is left out.
func withDefaults(pools []Pool) []Pool {
	pools = slices.Clone(pools)
	for i := range pools {
		pools[i].Notice = cmp.Or(pools[i].Notice, defaultNotice)
	}
	return pools
}

// poolsOf are the pools that a machine is of, by their places.
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

// names says whether a pool names a driver. inv.mu is held.
func (inv *Inventory) names(driver string) bool {
	return slices.ContainsFunc(inv.opts.Pools, func(p Pool) bool {
		return slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Driver == driver })
	})
}

// asksOfPools is a Pod without the extended resources that no pool names: of those nothing can be given back to it. inv.mu is held.
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
