//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"sluice.dev/sluice/internal/core/job"
)

// Offer replaces the pools. What runs on slices that are no longer offered goes on; new slices appear with the next report. Errors are of
// kind Invalid and list everything that is wrong; the pools then stay as they were.
func (inv *Inventory) Offer(pools []Pool) error {
	if err := checkPools(pools); err != nil {
		return err
	}
	inv.mu.Lock()
	inv.opts.Pools = withDefaults(pools)
	for _, name := range inv.nodes.GetStore().ListKeys() {
		inv.dirty[name] = true
	}
	inv.told.generation++
	inv.mu.Unlock()
	inv.rouse()
	return nil
}

// PoolOf is the pool that a slice is of; false: none has it now.
func (inv *Inventory) PoolOf(id job.SliceID) (Pool, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, x := range inv.stands {
		if p := x.pool[id]; p != nil {
			return *p, true
		}
	}
	return Pool{}, false
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
		if labels.SelectorFromSet(pools[i].Nodes).Matches(labels.Set(m.Labels)) {
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

// omitted counts devices that pools name and that can't be offered, by what is wrong with them.
type omitted map[omission]int

type omission struct{ pool, why string }

func (o omitted) add(p *Pool, n int, format string, args ...any) {
	if o != nil && n > 0 {
		o[omission{p.Name, fmt.Sprintf(format, args...)}] += n
	}
}
