//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// translator puts what is known of a cluster into the terms of core/reclaim, where the node decides for whom subjobs stop. It decides
// nothing: the same objects translate to the same. Inventory.mu is held while one is used.
type translator struct {
	of    *sources
	pools []Pool
}

// machine is one with what is on it, as of its last evaluation. Ends that are only estimated are left out: they are no reason to stop a
// subjob.
func (w *translator) machine(s *scene, x *stand) reclaim.Machine {
	m := s.machine
	out := reclaim.Machine{Name: m.Name, Labels: pairs(m.Labels)}
	out.Labels = append(out.Labels, reclaim.Pair{Name: metav1.ObjectNameField, Value: m.Name})
	slices.SortFunc(out.Labels, func(a, b reclaim.Pair) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range m.taints {
		out.Taints = append(out.Taints, reclaim.Taint{Key: t.key, Value: t.value, Effect: string(t.effect)})
	}
	out.Shut = slices.ContainsFunc(m.closed, func(r protocol.Reservation) bool { return r.Start == 0 && r.End == quantity.Never })
	for i := range x.slices {
		if p := x.pool[x.slices[i].ID]; !p.NeverGives {
			out.Slices = append(out.Slices, reclaim.Slice{ID: x.slices[i].ID, Notice: p.Notice, Pool: p.Name})
		}
	}
	out.Resources = w.resources(s, x)
	for _, t := range slices.SortedFunc(slices.Values(s.pods), func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) }) {
		asks := w.asks(t.need.asks)
		if !t.ours && len(asks) == 0 {
			continue
		}
		one := reclaim.Tenant{Asks: asks, Began: t.life.started, Limit: t.life.active, End: t.ends(s.limits), Leaving: t.life.leaves != 0}
		if t.ours {
			one.Slice = t.slice
		}
		out.Tenants = append(out.Tenants, one)
	}
	stated := *s
	stated.likely = nil
	pools, _ := gather(s.resourceSlices, x.published)
	for i := range pools {
		out.Pools = append(out.Pools, w.pool(&stated, &pools[i]))
	}
	return out
}

// asks are the extended resources that a pool names: none of the others can be given back.
func (w *translator) asks(of map[string]int64) (list []reclaim.Ask) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if w.counts(name) {
			list = append(list, reclaim.Ask{Resource: name, N: of[name]})
		}
	}
	return list
}

// counts reports whether a pool names an extended resource.
func (w *translator) counts(name string) bool {
	return slices.ContainsFunc(w.pools, func(p Pool) bool {
		return slices.ContainsFunc(p.Resources, func(r Resource) bool { return r.Name == name })
	})
}

// resources are a machine's extended resources that a pool names, with the slices of the machine's own pools.
func (w *translator) resources(s *scene, x *stand) (list []reclaim.Resource) {
	for _, name := range slices.Sorted(maps.Keys(s.machine.counts)) {
		if !w.counts(name) {
			continue
		}
		r := reclaim.Resource{Name: name, N: s.machine.counts[name]}
		for _, offered := range s.countedSlices(name) {
			until := quantity.Instant(0)
			for _, h := range x.closures[offered.ID] {
				if h.Kind == protocol.ForForeign {
					until = max(until, h.End)
				}
			}
			r.Slices, r.Others = append(r.Slices, offered.ID), append(r.Others, until)
		}
		list = append(list, r)
	}
	return list
}

// countedSlices are those of an extended resource, by the first of the machine's pools that names it; none if they are not offered.
func (s *scene) countedSlices(name string) []protocol.Slice {
	for _, i := range s.machine.pools {
		for k := range s.pools[i].Resources {
			if r := &s.pools[i].Resources[k]; r.Name == name {
				list, _ := counted(r, s.machine, s.counts[name])
				return list
			}
		}
	}
	return nil
}

// pool is a driver's pool as a machine has it. Its counters are numbered as they appear.
func (w *translator) pool(s *scene, p *published) reclaim.Pool {
	out := reclaim.Pool{Name: p.driver + "/" + p.pool, Driver: p.driver}
	numbers := map[[2]string]int{}
	number := func(u *count) int {
		k := [2]string{u.set, u.counter}
		n, there := numbers[k]
		if !there {
			n = len(out.Total)
			numbers[k], out.Total = n, append(out.Total, p.total[k])
		}
		return n
	}
	has, at := s.stays(p), map[string]int{}
	for i := range p.devices {
		d := &p.devices[i]
		one := reclaim.Device{
			Name: d.name, Here: d.machine == s.machine.Name, Barred: len(d.taints) > 0 || d.several, Failing: len(d.taints) > 0,
			Classes: w.classes(p.driver, d), Attributes: pairs(d.attributes),
		}
		for _, name := range slices.Sorted(maps.Keys(d.capacities)) {
			one.Capacities = append(one.Capacities, reclaim.Capacity{Name: name, Amount: amountIn(d.capacities[name])})
		}
		for k := range d.uses {
			one.Uses = append(one.Uses, reclaim.Use{Counter: number(&d.uses[k]), N: d.uses[k].n})
		}
		if y, taken := has[d.name]; taken {
			if one.Holder = reclaim.Others; y.ours {
				one.Holder = reclaim.Ours
			}
			one.End = y.end
		}
		at[d.name] = i
		out.Devices = append(out.Devices, one)
	}
	for _, o := range p.layout(s.machine, s.pools, s.class, nil) {
		out.Devices[at[o.name]].Slice = o.slice.ID
		out.Layout = append(out.Layout, int64(at[o.name]))
	}
	return out
}

// classes are those that pools give a device.
func (w *translator) classes(driver string, d *device) (list []string) {
	for i := range w.pools {
		for k := range w.pools[i].Classes {
			if c := &w.pools[i].Classes[k]; matches(c, driver, d) {
				list = append(list, c.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
