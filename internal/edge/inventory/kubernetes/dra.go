//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/gpulabels"
)

// published is one pool of a driver, assembled from its ResourceSlices.
type published struct {
	pooled
	devices []device
	total   counters
}

// counters are amounts by set and name.
type counters map[[2]string]int64

func (c counters) add(list []count, sign int64) {
	for _, u := range list {
		c[[2]string{u.set, u.counter}] += sign * u.n
	}
}

// bear reports whether enough is left for these uses.
func (c counters) bear(uses []count) bool {
	return !slices.ContainsFunc(uses, func(u count) bool { return c[[2]string{u.set, u.counter}] < u.n })
}

// gather assembles pools from their parts, of the latest generation alone, ordered by driver and pool. While parts of a new generation are
// missing the pool is what it was before, or is left out if that is not known. broken are pools of which Kubernetes allocates nothing, as
// they contradict themselves.
func gather(resourceSlices []*resourceSlice, before map[pooled]published) (list []published, broken []contradiction) {
	byPool := map[pooled][]*resourceSlice{}
	for _, o := range resourceSlices {
		k := pooled{o.driver, o.pool}
		if all := byPool[k]; len(all) > 0 && all[0].generation < o.generation {
			byPool[k] = nil
		} else if len(all) > 0 && all[0].generation > o.generation {
			continue
		}
		byPool[k] = append(byPool[k], o)
	}
	for k, parts := range byPool {
		announced := func(a, b *resourceSlice) int { return cmp.Compare(a.parts, b.parts) }
		if int64(len(parts)) < slices.MaxFunc(parts, announced).parts {
			if was, known := before[k]; known {
				list = append(list, was)
			}
			continue
		}
		p := published{pooled: k, total: counters{}}
		fine, why := false, ""
		for _, o := range parts {
			p.devices = append(p.devices, o.devices...)
			if slices.ContainsFunc(o.counters, func(c count) bool { _, twice := p.total[[2]string{c.set, c.counter}]; return twice }) {
				why = "names counters twice"
			}
			p.total.add(o.counters, 1)
			fine = fine || o.fine
		}
		slices.SortFunc(p.devices, func(a, b device) int { return cmp.Compare(a.name, b.name) })
		if int64(len(parts)) > slices.MinFunc(parts, announced).parts {
			why = "has more ResourceSlices than it announces"
		}
		if why = cmp.Or(why, p.contradicts()); why != "" {
			broken = append(broken, contradiction{k, p.devices, why})
			continue
		}
		if fine {
			p.even(parts)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b published) int { return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.pool, b.pool)) })
	return list, broken
}

// contradiction is a pool that contradicts itself, with what it would have had.
type contradiction struct {
	pooled
	devices []device
	why     string
}

// contradicts says how a pool's devices, ordered by name, contradict each other or its counters; empty: they don't.
func (p *published) contradicts() string {
	for i := range p.devices {
		d := &p.devices[i]
		if i > 0 && p.devices[i-1].name == d.name {
			return "has two devices of one name"
		}
		for _, u := range d.uses {
			if _, there := p.total[[2]string{u.set, u.counter}]; !there {
				return "has devices that use counters that are not there"
			}
		}
	}
	return ""
}

// offered is a device that is offered as a slice.
type offered struct {
	*device
	slice protocol.Slice
	pool  *Pool
}

// matches reports whether a device has a class's driver and attributes.
func matches(c *Class, driver string, d *device) bool {
	if c.Driver != driver {
		return false
	}
	for name, value := range c.Attributes {
		has := d.plain(name, driver)
		if name == "profile" {
			has, _ = mig.Canonical(has)
			value, _ = mig.Canonical(value)
		}
		if has != value {
			return false
		}
	}
	return true
}

// layout picks the devices of a machine to offer, but none that its DeviceClass, where class finds it, rules out: no claim could be given
// that. Of those that share counters as many as fit side by side, class by class, by name. It depends on what exists and not on who holds
// it, so that slices do not come and go with their users. Devices of a class that can't be offered are counted in out, unless that is nil.
func (p *published) layout(m *machine, pools []Pool, class classes, out omitted) (list []offered) {
	left := maps.Clone(p.total)
	taken := map[string]bool{}
	for _, i := range m.pools {
		for c := range pools[i].Classes {
			of := &pools[i].Classes[c]
			only := class.terms(of.Name)
			for k := range p.devices {
				d := &p.devices[k]
				if d.machine != m.Name || taken[d.name] || !matches(of, p.driver, d) || only.means(p.driver, d) == isNot ||
					!left.bear(d.uses) {
					continue
				}
				s := p.slice(m, of, d)
				if taken[d.name] = true; d.several || s.Capacity[trp.Memory] <= 0 {
					if d.several {
						out.add(&pools[i], 1, "devices of %s are for several at once", p.driver)
					} else {
						out.add(&pools[i], 1, "devices of %s do not say their memory, nor does their profile (%s): say it in their class",
							p.driver,
							s.Profile)
					}
					continue
				}
				left.add(d.uses, -1)
				list = append(list, offered{d, s, &pools[i]})
			}
		}
	}
	return list
}

// slice describes a device as a slice.
func (p *published) slice(m *machine, class *Class, d *device) protocol.Slice {
	name := d.name
	if p.pool != m.Name {
		name = p.pool + "." + name
	}
	model, _ := mig.ModelOf(d.plain("productName", p.driver))
	model = cmp.Or(model, m.said().Describe(gpulabels.WholeGPU).Model, "gpu")
	profile, _ := mig.Canonical(cmp.Or(d.plain("profile", p.driver), mig.Whole))
	known := mig.Lookup(model, profile)
	return protocol.Slice{
		ID: job.SliceID(m.Name + "/" + name), Model: model, Profile: profile, Speed: cmp.Or(class.Speed, known.Speed),
		Capacity: trp.Vector{trp.Memory: cmp.Or(d.memory, class.Memory, known.Memory)},
		Device:   cluster.Device{Node: m.Name, Class: class.Name, Driver: p.driver, Pool: p.pool, Name: d.name}.String(),
	}
}

// stay is the use of a device: by whom, and until when.
type stay struct {
	ours bool
	end  quantity.Instant
	who  string
}

// held computes what others hold of the offered devices: the device itself, or so much of the counters it shares that too little is left
// for it, until enough of them have ended. Devices that our own subjobs are on are not in the answer.
func (p *published) held(list []offered, has map[string]stay) map[job.SliceID]protocol.Reservation {
	left := maps.Clone(p.total)
	var others []stay
	uses := map[int][]count{}
	for i := range p.devices {
		d := &p.devices[i]
		s, taken := has[d.name]
		if !taken {
			continue
		}
		left.add(d.uses, -1)
		if !s.ours && len(d.uses) > 0 {
			uses[len(others)] = d.uses
			others = append(others, s)
		}
	}
	order := make([]int, len(others)) // by end
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(others[a].end, others[b].end) })
	held := map[job.SliceID]protocol.Reservation{}
	var shared []*offered // their counters are used up by others
	for i := range list {
		o := &list[i]
		r := protocol.Reservation{Kind: protocol.ForForeign, End: quantity.Never}
		switch s, taken := has[o.name]; {
		case taken && s.ours:
			continue
		case taken:
			r.End, r.Source = s.end, s.who
		case len(o.taints) > 0: // nobody gets it
			continue
		case left.bear(o.uses):
			left.add(o.uses, -1)
			continue
		default:
			shared = append(shared, o)
			continue
		}
		held[o.slice.ID] = r
	}
	for _, o := range shared { // all that is free is taken to be sold meanwhile
		r := protocol.Reservation{Kind: protocol.ForForeign, End: quantity.Never}
		then := maps.Clone(left)
		for _, k := range order {
			then.add(uses[k], 1)
			r.End, r.Source = others[k].end, others[k].who
			if then.bear(o.uses) {
				break
			}
		}
		if !then.bear(o.uses) { // used up by ours, on a device that is not offered any more
			r.End = quantity.Never
		}
		held[o.slice.ID] = r
	}
	return held
}

// mostUnits bounds a total that is counted in fractions: sums of that many fit in an int64.
const mostUnits = math.MaxInt64 / 4096

// even counts each counter of a pool in one unit, so that sums of integers are exact: in the finest of its fractions, as far as its total
// fits in that. parts are the pool's.
func (p *published) even(parts []*resourceSlice) {
	places := map[[2]string]int8{}
	note := func(list []count) {
		for _, c := range list {
			k := [2]string{c.set, c.counter}
			places[k] = max(places[k], c.places)
		}
	}
	for _, o := range parts {
		note(o.counters)
		for i := range o.devices {
			note(o.devices[i].uses)
		}
	}
	total := map[[2]string]int64{}
	for _, o := range parts {
		for _, c := range o.counters {
			k := [2]string{c.set, c.counter}
			for places[k] > 0 && c.in(places[k], false, mostUnits) == mostUnits {
				places[k]--
			}
			total[k] = c.in(places[k], false, math.MaxInt64)
		}
	}
	p.total = total
	for i := range p.devices {
		d := &p.devices[i]
		if len(d.uses) == 0 {
			continue
		}
		d.uses = slices.Clone(d.uses) // the driver's are shared
		for k := range d.uses {
			u := &d.uses[k]
			key := [2]string{u.set, u.counter}
			most := int64(math.MaxInt64)
			if places[key] > 0 {
				most = total[key] + 1 // which is as much too much as anything
			}
			u.amount = amount{u.in(places[key], true, most), places[key]}
		}
	}
}
