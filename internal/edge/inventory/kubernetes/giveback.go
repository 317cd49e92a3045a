//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/giveback"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Kubernetes preempts nobody for a device (DRA), and for extended resources at once and without notice. So a Pod of somebody else's for which no place is found is
// looked for here: where subjobs of ours hold what it waits for, those that cost least to stop are given notice, and their place is kept for it until it has one.

const (
	// patience is how long beyond the notice a place is kept for a Pod that does not come. Then it waits for something that is not known here, and is left alone
	// for a while.
	patience = time.Minute
	leaves   = 10 * time.Minute
	// mostReclaims bounds for how many Pods places are kept at once, and mostDevices how many devices one may want.
	mostReclaims = 256
	mostDevices  = 16
)

// reclaim is what is given back for one Pod that waits.
type reclaim struct {
	uid     types.UID
	waiter  *tenant
	machine string
	// devices that are kept for it, and how many of extended resources: what it asks for.
	devices []place
	counted bool
	// slices of ours whose subjobs are cut short, at an instant.
	slices []job.SliceID
	at     quantity.Instant
}

// who waits, for people.
func (g *reclaim) who() string {
	return "pod " + g.waiter.Namespace + "/" + g.waiter.Name + ", which waits for it"
}

// holds close a slice at once, and cut short what runs there when its notice is over.
func (g *reclaim) holds() []protocol.Reservation {
	return []protocol.Reservation{
		{Kind: protocol.ForReclaim, End: quantity.Never, Source: g.who()},
		{Kind: protocol.ForReclaim, Start: g.at, End: quantity.Never, Source: g.who(), Truncate: true},
	}
}

// reclaims are all that stand, by the Pods they are for; tried are those that were kept in vain, until when nothing is kept for them.
type reclaims struct {
	by    map[types.UID]*reclaim
	tried map[types.UID]quantity.Instant
}

// on are those on a machine, in order of Pod.
func (r *reclaims) on(machine string) (list []*reclaim) {
	for _, g := range r.by {
		if g.machine == machine {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *reclaim) int { return cmp.Compare(a.uid, b.uid) })
	return list
}

// decide gives back for Pods that wait, and ends what was given for those that do not any more. It returns the machines on which that changes anything.
func (inv *Inventory) decide(now quantity.Instant) (machines []string) {
	r := &inv.reclaims
	waiters := by[*tenant](inv.pods, byWaiting, waiting)
	slices.SortFunc(waiters, func(a, b *tenant) int { return cmp.Or(cmp.Compare(a.waits, b.waits), cmp.Compare(a.UID, b.UID)) })
	still := map[types.UID]bool{}
	for _, t := range waiters {
		still[t.UID] = true
	}
	for _, uid := range sortedKeys(r.by) {
		g := r.by[uid]
		late := now > g.at.Add(patience)
		if still[uid] && !late && !inv.taken(now, g) {
			continue
		}
		if delete(r.by, uid); late && still[uid] {
			r.tried[uid] = now.Add(leaves)
		}
		machines = append(machines, g.machine)
	}
	for uid, until := range r.tried {
		if now > until {
			delete(r.tried, uid)
		}
	}
	for _, t := range waiters {
		_, tried := r.tried[t.UID]
		if tried || r.by[t.UID] != nil || len(r.by) >= mostReclaims {
			continue
		}
		if g := inv.place(now, t); g != nil {
			r.by[t.UID] = g
			machines = append(machines, g.machine)
		}
	}
	return machines
}

// place finds the machine where room for a Pod that waits costs least; nil: nothing of ours is in its way.
func (inv *Inventory) place(now quantity.Instant, t *tenant) *reclaim {
	wants, known := inv.wants(t)
	if !known || len(wants)+len(t.asks) == 0 {
		return nil
	}
	names := inv.pods.GetIndexer().ListIndexFuncValues(byOurs)
	slices.Sort(names)
	var best *reclaim
	var least giveback.Cost
	for _, name := range names {
		m, there := get[*machine](inv.nodes, name)
		if !there || !t.mayRunOn(m) {
			continue
		}
		room := inv.room(now, m)
		g, cost, ok := room.find(t, wants)
		switch {
		case !ok:
		case len(g.slices) == 0:
			return nil // it has room: whatever it waits for is not ours
		case best == nil || cost.Compare(least) < 0:
			best, least = g, cost
		}
	}
	return best
}

// wants are the devices that a Pod's claims ask for; false: one of them is about to be made.
func (inv *Inventory) wants(t *tenant) (wants []want, known bool) {
	for _, key := range t.claims {
		c, there := get[*claim](inv.claims, key)
		if !there {
			return nil, false
		}
		wants = append(wants, c.wants...)
	}
	return wants, true
}

// taken says whether somebody else was faster: the subjobs that gave way for a Pod are gone, and without it there is no room for it on the machine any more. The
// scheduler looks at a Pod that waits with pauses, and at one that has just come at once.
func (inv *Inventory) taken(now quantity.Instant, g *reclaim) bool {
	m, there := get[*machine](inv.nodes, g.machine)
	wants, known := inv.wants(g.waiter)
	if !there || !known {
		return !there
	}
	room := inv.room(now, m)
	if slices.ContainsFunc(room.tenants, func(t *tenant) bool { return t.ours && slices.Contains(g.slices, t.slice) }) {
		return false
	}
	room.gives = slices.DeleteFunc(slices.Clone(room.gives), func(o *reclaim) bool { return o == g })
	more, _, ok := room.find(g.waiter, wants)
	return !ok || len(more.slices) > 0
}

// mayRunOn says whether a Pod's selectors and tolerations let it run on a machine. Of affinities between Pods nothing is known.
func (t *tenant) mayRunOn(m *machine) bool {
	for _, r := range m.closed {
		if r.Start == 0 && r.End == quantity.Never {
			return false
		}
	}
	for _, x := range m.taints {
		if !slices.Contains(t.tolerates, x.key) && !slices.Contains(t.tolerates, "") {
			return false
		}
	}
	if !labels.SelectorFromSet(t.nodes).Matches(labels.Set(m.Labels)) {
		return false
	}
	if t.affinity == nil {
		return true
	}
	set := labels.Set{metav1.ObjectNameField: m.Name}
	maps.Copy(set, m.Labels)
	return slices.ContainsFunc(t.affinity, func(s labels.Selector) bool { return s.Matches(set) })
}

// room is a machine as somebody who waits looks at it: what is free, and which subjobs could be stopped.
type room struct {
	*scene
	now    quantity.Instant
	costs  func(job.SliceID) giveback.Cost
	notice func(job.SliceID) (time.Duration, bool)
	class  func(name string) (*class, bool)
}

func (inv *Inventory) room(now quantity.Instant, m *machine) *room {
	r := &room{scene: inv.scene(m), now: now}
	x := inv.stands[m.Name]
	r.class = func(name string) (*class, bool) { return get[*class](inv.classes, name) }
	r.notice = func(id job.SliceID) (time.Duration, bool) {
		if x == nil || x.pool[id] == nil || x.pool[id].Keeps {
			return 0, false
		}
		return x.pool[id].Notice, true
	}
	r.costs = func(id job.SliceID) giveback.Cost {
		if inv.opts.Costs != nil {
			if c, known := inv.opts.Costs(id); known {
				return c
			}
		}
		c := giveback.Cost{Left: time.Hour}
		for _, t := range r.tenants {
			if t.ours && t.slice == id && t.started != 0 {
				c.Lost = max(0, now.Sub(t.started))
				if t.active > 0 {
					c.Left = max(0, t.started.Add(t.active).Sub(now))
				}
			}
		}
		return c
	}
	return r
}

// find says what would be given back on the machine for a Pod, and at what cost; none where that does not do.
func (r *room) find(t *tenant, wants []want) (g *reclaim, cost giveback.Cost, ok bool) {
	g = &reclaim{uid: t.UID, waiter: t, machine: r.Name, counted: len(t.asks) > 0}
	if cost, ok = r.findCounted(t, g); !ok {
		return nil, cost, false
	}
	left := r.lefts()
	for i := range wants {
		for range min(wants[i].n, mostDevices) {
			c, found := left.device(r, &wants[i], g)
			if !found {
				return nil, cost, false
			}
			cost = cost.Plus(c)
		}
	}
	slices.Sort(g.slices)
	notice := time.Duration(0)
	for _, id := range g.slices {
		n, _ := r.notice(id)
		notice = max(notice, n)
	}
	g.at = r.now.Add(notice)
	return g, cost, true
}

// findCounted stops as many of each extended resource as the machine lacks for a Pod.
func (r *room) findCounted(t *tenant, g *reclaim) (cost giveback.Cost, ok bool) {
	for _, name := range sortedKeys(t.asks) {
		short := t.asks[name] - r.counts[name]
		var pieces []giveback.Piece
		var ids []job.SliceID
		for _, other := range r.tenants {
			short += other.asks[name]
			_, gives := r.notice(other.slice)
			if other.ours && other.asks[name] > 0 && gives && !r.given(other.slice) {
				pieces, ids = append(pieces, giveback.Piece{Frees: []int64{other.asks[name]}, Cost: r.costs(other.slice)}), append(ids, other.slice)
			}
		}
		for _, before := range r.gives { // what is freed is for them
			if before.counted {
				short += before.waiter.asks[name]
			}
			for _, other := range r.tenants {
				if other.ours && slices.Contains(before.slices, other.slice) {
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

// given says whether a slice is given back already.
func (r *room) given(id job.SliceID) bool {
	return slices.ContainsFunc(r.gives, func(g *reclaim) bool { return slices.Contains(g.slices, id) })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// remains is what is left of a driver's pool beside all who have something of it, as a Pod that waits is given one device after the other.
type remains struct {
	published
	left counters
	// has are the devices that others have or that are kept, ours those of subjobs that may be stopped, with their slices.
	has  map[string]bool
	ours map[string]job.SliceID
}

type remainders []*remains

// lefts are those of all pools of the machine.
func (r *room) lefts() (all remainders) {
	list, _ := gather(r.offers)
	for i := range list {
		p := list[i]
		x := &remains{published: p, left: counters{}, has: map[string]bool{}, ours: map[string]job.SliceID{}}
		for k, n := range p.total {
			x.left[k] = n
		}
		layout, _ := p.layout(r.machine, r.pools)
		stays := r.stays(&p)
		for k := range p.devices {
			d := &p.devices[k]
			s, taken := stays[d.name]
			if !taken {
				continue
			}
			var id job.SliceID
			if at := slices.IndexFunc(layout, func(o offered) bool { return o.name == d.name }); at >= 0 {
				id = layout[at].slice.ID
			}
			_, gives := r.notice(id)
			switch {
			case s.ours && r.given(id): // it is on its way out
			case s.ours && gives:
				x.ours[d.name] = id
				x.left.add(d.uses, -1)
			default:
				x.has[d.name] = true
				x.left.add(d.uses, -1)
			}
		}
		for _, g := range r.gives {
			for _, at := range g.devices {
				if k := slices.IndexFunc(p.devices, func(d device) bool { return at.pooled == p.pooled && at.device == d.name }); k >= 0 && !x.has[at.device] {
					x.has[at.device] = true
					x.left.add(p.devices[k].uses, -1)
				}
			}
		}
		all = append(all, x)
	}
	return all
}

// device gives the device that costs least. One that is free is none if nobody knows whether it is meant: the scheduler would have taken it.
func (all remainders) device(r *room, w *want, g *reclaim) (cost giveback.Cost, found bool) {
	var from *remains
	var chosen []string
	var which *device
	for _, x := range all {
		names := sortedNames(x.ours)
		for k := range x.devices {
			d := &x.devices[k]
			m := isNot
			if d.machine == r.Name && d.tainted == "" && !x.has[d.name] {
				m = r.means(w, x.driver, d)
			}
			if m == isNot {
				continue
			}
			short := make([]int64, len(d.uses)+1)
			for i, u := range d.uses {
				short[i] = u.n - x.left[[2]string{u.set, u.counter}]
			}
			if _, ours := x.ours[d.name]; ours {
				short[len(d.uses)] = 1
			}
			var pieces []giveback.Piece
			for _, name := range names {
				pieces = append(pieces, giveback.Piece{Frees: x.frees(name, d), Cost: r.costs(x.ours[name])})
			}
			set, c, ok := giveback.Choose(short, pieces)
			if !ok || m == maybe && len(set) == 0 || found && c.Compare(cost) >= 0 {
				continue
			}
			cost, found, from, which, chosen = c, true, x, d, nil
			for _, i := range set {
				chosen = append(chosen, names[i])
			}
		}
	}
	if !found {
		return cost, false
	}
	for _, name := range chosen {
		k := slices.IndexFunc(from.devices, func(d device) bool { return d.name == name })
		from.left.add(from.devices[k].uses, 1)
		g.slices = append(g.slices, from.ours[name])
		delete(from.ours, name)
	}
	from.left.add(which.uses, -1)
	from.has[which.name] = true
	g.devices = append(g.devices, place{from.pooled, which.name})
	return cost, true
}

// frees is what stopping the subjob on a device frees of what another one needs; the last of it is that device itself.
func (x *remains) frees(name string, d *device) []int64 {
	list := make([]int64, len(d.uses)+1)
	k := slices.IndexFunc(x.devices, func(d device) bool { return d.name == name })
	for i, u := range d.uses {
		for _, v := range x.devices[k].uses {
			if u.set == v.set && u.counter == v.counter {
				list[i] += v.n
			}
		}
	}
	if name == d.name {
		list[len(d.uses)] = 1
	}
	return list
}

// means says whether somebody who waits means a device: by the class and the claim, as far as their selectors are understood; of a class that nobody has seen by what
// pools say of it.
func (r *room) means(w *want, driver string, d *device) meant {
	m := w.only.means(driver, d)
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

func sortedNames(m map[string]job.SliceID) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Indexes of Pods: those that wait, and the machines on which ours are.
const (
	byWaiting = "waiting"
	waiting   = "yes"
	byOurs    = "ours"
)

func waits() cache.IndexFunc {
	return index(func(t *tenant) []string {
		if t.waits == 0 || t.ours || t.queued || t.nominated {
			return nil
		}
		return []string{waiting}
	})
}

func hosts() cache.IndexFunc {
	return index(func(t *tenant) []string {
		if !t.ours {
			return nil
		}
		return only(t.machine)
	})
}
