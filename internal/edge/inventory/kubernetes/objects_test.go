//go:build kubernetes

package kubernetes

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	core "sluice.dev/sluice/internal/core/reclaim"
)

// Kubernetes' objects in the words of core/reclaim, which is to decide in place of what is beside this: until it does, tests hold the two
// together. Everything here only translates.

// machineOf is a machine with what is on it, as of its last evaluation. inv.mu is held.
func (inv *Inventory) machineOf(m *machine) core.Machine {
	s, x := inv.scene(m), inv.stands[m.Name]
	if x == nil {
		x = &stand{}
	}
	out := core.Machine{Name: m.Name, Labels: pairs(m.Labels)}
	out.Labels = append(out.Labels, core.Pair{Name: metav1.ObjectNameField, Value: m.Name})
	slices.SortFunc(out.Labels, byPairName)
	for _, t := range m.taints {
		out.Taints = append(out.Taints, core.Taint{Key: t.key, Value: t.value, Effect: string(t.effect)})
	}
	out.Shut = slices.ContainsFunc(m.closed, func(r protocol.Reservation) bool { return r.Start == 0 && r.End == quantity.Never })
	for i := range x.slices {
		if p := x.pool[x.slices[i].ID]; !p.Keeps {
			out.Slices = append(out.Slices, core.Slice{ID: x.slices[i].ID, Notice: p.Notice})
		}
	}
	out.Resources = inv.resourcesOn(s, x)
	tenants := slices.SortedFunc(slices.Values(s.tenants), func(a, b *tenant) int { return cmp.Compare(a.UID, b.UID) })
	for _, t := range tenants {
		asks := asked(inv.asksOfPools(t).asks)
		if !t.ours && len(asks) == 0 {
			continue
		}
		one := core.Tenant{Asks: asks, Began: t.started, Limit: t.active, End: t.ends(s.limits)}
		if t.ours {
			one.Slice = t.slice
		}
		out.Tenants = append(out.Tenants, one)
	}
	pools, _ := gather(s.offers, x.published)
	for i := range pools {
		out.Pools = append(out.Pools, inv.poolOn(s, &pools[i]))
	}
	return out
}

func byPairName(a, b core.Pair) int { return strings.Compare(a.Name, b.Name) }

func pairs(of map[string]string) (list []core.Pair) {
	for _, name := range sortedKeys(of) {
		list = append(list, core.Pair{Name: name, Value: of[name]})
	}
	return list
}

func asked(of map[string]int64) (list []core.Ask) {
	for _, name := range sortedKeys(of) {
		list = append(list, core.Ask{Resource: name, N: of[name]})
	}
	return list
}

// resourcesOn are a machine's extended resources that any pool names; slices are those of its own pools.
func (inv *Inventory) resourcesOn(s *scene, x *stand) (list []core.Resource) {
	named := map[string]bool{}
	for i := range inv.opts.Pools {
		for k := range inv.opts.Pools[i].Resources {
			named[inv.opts.Pools[i].Resources[k].Name] = true
		}
	}
	for _, name := range sortedKeys(s.counts) {
		if !named[name] {
			continue
		}
		r := core.Resource{Name: name, N: s.counts[name]}
		for _, offered := range s.countedSlices(name) {
			until := quantity.Instant(0)
			for _, h := range x.holds[offered.ID] {
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
				list, _ := r.counted(s.machine, s.counts[name])
				return list
			}
		}
	}
	return nil
}

// poolOn is a driver's pool as a machine has it.
func (inv *Inventory) poolOn(s *scene, p *published) core.Pool {
	out := core.Pool{Name: p.driver + "/" + p.pool, Driver: p.driver}
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
		one := core.Device{
			Name: d.name, Here: d.machine == s.machine.Name, Barred: len(d.taints) > 0 || d.several, Failing: len(d.taints) > 0,
			Classes: inv.classesOf(p.driver, d), Attributes: pairs(d.attributes),
		}
		for _, name := range sortedKeys(d.capacities) {
			one.Capacities = append(one.Capacities, core.Capacity{Name: name, Amount: amountIn(d.capacities[name])})
		}
		for k := range d.uses {
			one.Uses = append(one.Uses, core.Use{Counter: number(&d.uses[k]), N: d.uses[k].n})
		}
		if y, taken := has[d.name]; taken {
			if one.Holder = core.Others; y.ours {
				one.Holder = core.Ours
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

// classesOf are the classes that pools say a device is of.
func (inv *Inventory) classesOf(driver string, d *device) (list []string) {
	for i := range inv.opts.Pools {
		for k := range inv.opts.Pools[i].Classes {
			if c := &inv.opts.Pools[i].Classes[k]; c.matches(driver, d) {
				list = append(list, c.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func amountIn(a amount) core.Amount { return core.Amount{N: a.n, Places: int16(a.places)} }

// wishOf is what a Pod that waits wants. inv.mu is held.
func (inv *Inventory) wishOf(t *tenant) core.Wish {
	w := inv.wishLike(inv.asksOfPools(t))
	w.ID, w.Kin, w.Since = core.ID(t.UID), kinIn(inv.kinOf(t)), t.waits
	for i, key := range t.claims {
		c, there := get[*claim](inv.claims, key)
		if !there {
			w.Blocked = true
			continue
		}
		w.Claims = append(w.Claims, core.Claim{Key: key, Requests: inv.requestsOf(i, c.wants)})
	}
	return w
}

func kinIn(k kin) core.Kin { return core.Kin{Owner: string(k.owner), Shape: k.shape} }

// wishLike is what a Pod, or one that is like it, wants beside its claims.
func (inv *Inventory) wishLike(t *tenant) core.Wish {
	w := core.Wish{Who: t.waitsFor(), Asks: asked(t.asks), Where: core.Where{Labels: pairs(t.nodes), Restricted: t.affinity != nil}}
	for _, s := range t.affinity {
		w.Where.AnyOf = append(w.Where.AnyOf, core.Rules{All: rulesOf(s)})
	}
	for i := range t.tolerates {
		x := &t.tolerates[i]
		one := core.Toleration{Key: x.Key, Op: string(x.Operator), Value: x.Value, Effect: string(x.Effect)}
		w.Where.Tolerates = append(w.Where.Tolerates, one)
	}
	return w
}

func rulesOf(s labels.Selector) (list []core.Rule) {
	rules, _ := s.Requirements()
	for _, r := range rules {
		list = append(list, core.Rule{Key: r.Key(), Op: ops[r.Operator()], Values: r.Values().List()})
	}
	return list
}

// ops are the names of the operators of label selectors.
var ops = map[selection.Operator]string{
	selection.In: "In", selection.NotIn: "NotIn", selection.Exists: "Exists", selection.DoesNotExist: "DoesNotExist",
	selection.GreaterThan: "Gt", selection.LessThan: "Lt",
}

// requestsOf are the requests of a Pod's n-th claim, less those that nothing here is for.
func (inv *Inventory) requestsOf(n int, wants []want) (list []core.Request) {
	numbers := map[*constraint]int{}
	for _, w := range inv.numbered(n, wants) {
		var r core.Request
		for i := range w.choices {
			c := &w.choices[i]
			one := core.Choice{N: c.n, Odd: c.odd, Terms: termsOf(c.only)}
			if of, seen := inv.class(c.class); seen {
				one.Terms = append(one.Terms, termsOf(of.only)...)
			} else {
				one.Class = c.class
			}
			for _, k := range c.alike {
				if _, there := numbers[k]; !there {
					numbers[k] = len(numbers)
				}
				one.Alike = append(one.Alike, core.Alike{Number: numbers[k], Domain: k.domain, Name: k.name})
			}
			r.Choices = append(r.Choices, one)
		}
		list = append(list, r)
	}
	return list
}

// termsOf are the terms of a selector. What is not understood may mean any device.
func termsOf(s selector) (list []core.Term) {
	for i := range s {
		t := &s[i]
		one := core.Term{Kind: kinds[t.kind], Domain: t.domain, Name: t.name, Op: t.op, Value: t.value}
		if t.kind == ofCapacity {
			q, err := resource.ParseQuantity(t.value)
			if err != nil {
				one.Kind = core.Unknown
			} else {
				one.Amount = amountIn(amountOf(&q, false))
			}
		}
		list = append(list, one)
	}
	return list
}

// kinds are what terms compare.
var kinds = map[termKind]core.TermKind{
	ofDriver: core.OfDriver, ofAttribute: core.OfAttribute, hasAttribute: core.HasAttribute,
	ofCapacity: core.OfCapacity, hasCapacity: core.HasCapacity,
}

// mostHeads bounds how many of those who wait in a queue are told of: of these the first that is not left alone gets a place.
const mostHeads = 4

// groupsOf are Kueue's Workloads whose Pods are to come: those that have their quota, and the first of each ClusterQueue, with when as many
// devices as they want come free there, where that is known. inv.mu is held.
func (inv *Inventory) groupsOf(now quantity.Instant) (list []core.Group) {
	p := &pass{Inventory: inv, now: now}
	for _, l := range by[*limit](inv.workloads, byComing, reserved) {
		list = append(list, inv.groupOf(l))
	}
	queued := map[string][]*limit{}
	for _, l := range by[*limit](inv.workloads, byComing, pending) {
		if q, there := get[*alias](inv.queues, l.coming.queue); there {
			queued[q.cluster] = append(queued[q.cluster], l)
		}
	}
	for _, cluster := range sortedKeys(queued) {
		all := queued[cluster]
		slices.SortFunc(all, func(a, b *limit) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for rank, l := range all[:min(len(all), mostHeads)] {
			g := inv.groupOf(l)
			g.Since, g.Queue, g.Rank, g.Until = 0, cluster, rank, quantity.Never
			if at, known := p.comesFree(cluster, l); known {
				if g.From = at; l.most > 0 {
					g.Until = at.Add(l.most)
				}
			}
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b core.Group) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// comesFree is when those who hold quota of a ClusterQueue must have ended that together have as many devices as a Workload wants; false:
// that is not known.
func (p *pass) comesFree(cluster string, l *limit) (quantity.Instant, bool) {
	type holder struct {
		*limit
		leaves quantity.Instant
	}
	var holders []holder
	for _, h := range by[*limit](p.workloads, byComing, reserved) {
		if h.coming.cluster != cluster || h.end == quantity.Never {
			continue
		}
		if x := (holder{h, p.leave(h)}); p.now <= x.leaves.Add(patience) {
			holders = append(holders, x)
		}
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Or(cmp.Compare(a.leaves, b.leaves), cmp.Compare(a.UID, b.UID)) })
	lacks := p.devices(l)
	for _, h := range holders {
		for of, n := range p.devices(h.limit) {
			lacks[of] -= n
		}
		enough := true
		for _, n := range lacks {
			enough = enough && n <= 0
		}
		if enough {
			return h.leaves, true
		}
	}
	return 0, false
}

// groupOf is a Workload with quota, as its Pods would be.
func (inv *Inventory) groupOf(l *limit) core.Group {
	g := core.Group{ID: core.ID(l.UID), Since: l.coming.since, Admitted: l.coming.admitted}
	for _, of := range l.owned() {
		g.Owners = append(g.Owners, string(of))
	}
	pods := inv.podsOf(l.owned()...)
	slices.SortFunc(pods, func(a, b *tenant) int { return cmp.Compare(a.UID, b.UID) })
	taken := map[*tenant]bool{}
	p := &pass{Inventory: inv}
	for k := range l.coming.parts {
		x := &l.coming.parts[k]
		part := core.Part{N: x.n, Like: inv.wishLike(p.withFlavors(x))}
		part.Like.Kin.Owner = string(x.like.owner)
		for i, key := range x.templates {
			t, there := get[*template](inv.templates, key)
			if !there {
				part.Like.Blocked = true
				continue
			}
			part.Like.Claims = append(part.Like.Claims, core.Claim{Requests: inv.requestsOf(len(x.claims)+i, t.wants)})
		}
		for i, key := range x.claims {
			c, there := get[*claim](inv.claims, key)
			if !there {
				part.Like.Blocked = true
				continue
			}
			part.Like.Claims = append(part.Like.Claims, core.Claim{Key: key, Requests: inv.requestsOf(i, c.wants)})
		}
		for _, t := range pods {
			if !taken[t] && t.machine != "" && len(part.Bound) < x.n && x.is(t) {
				taken[t] = true
				part.Bound = append(part.Bound, t.machine)
			}
		}
		g.Parts = append(g.Parts, part)
	}
	return g
}

// membership is the group that a Pod is one of, and its part there: that of a Workload whose Pods are to come, which owns it or is its own.
func (inv *Inventory) membership(t *tenant) (core.ID, int) {
	for _, l := range by[*limit](inv.workloads, byComing, reserved) {
		for _, o := range inv.podsOf(l.owned()...) {
			if o.UID != t.UID {
				continue
			}
			for k := range l.coming.parts {
				if l.coming.parts[k].is(t) {
					return core.ID(l.UID), k
				}
			}
		}
	}
	return "", 0
}
