//go:build kubernetes

package kubernetes

import (
	"cmp"
	"hash/crc32"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
	giveback "sluice.dev/sluice/internal/core/reclaim"
)

// Kubernetes preempts nobody for DRA devices, and preempts for extended resources at once, without the notice that subjobs need. So unschedulable Pods of others are watched here: where our
// subjobs hold what such a Pod waits for, those that cost least to stop get notice, and their place is kept for the Pod until it is placed.

const (
	// patience is how long a free place is kept for a Pod that does not come. It must be waiting for something that is not modelled here, and is ignored for leaves,
	// doubling each time up to mostLeaves. longest is how long after its notice a Pod of ours may take to be gone: it has to store what it did.
	patience   = time.Minute
	leaves     = 10 * time.Minute
	mostLeaves = 6 * time.Hour
	longest    = 10 * time.Minute
	// pauses is a little more than kube-scheduler's longest back-off (10 s), within which it retries a Pod for which there is room.
	pauses = 12 * time.Second
	// rests is the pause after a search that found no place.
	rests = 10 * time.Second
	// mostReclaims bounds the places kept at once for Pods that wait (mostEarly those kept ahead), mostLooks the searches for these in one pass. A search takes the cheapest
	// place on enough machines that the Pod may run on; while it finds none it goes on to mostMachines, and a later one begins elsewhere. mostDevices is the most devices
	// sought for one request; a larger count is treated as this.
	mostReclaims = 256
	mostLooks    = 4
	enough       = 128
	mostMachines = 512
	mostDevices  = 16
)

// waiter is an unschedulable Pod of somebody else's, and when it is due for a search.
type waiter struct {
	*tenant
	kin kin
	due quantity.Instant
}

// decide keeps places for Pods that wait and releases those no longer needed. It returns the machines on which anything changed. inv.mu is held.
func (inv *Inventory) decide(now quantity.Instant) (machines []string) {
	r := &inv.reclaims
	waiters := inv.waiters()
	still := map[types.UID]bool{}
	for i := range waiters {
		still[waiters[i].UID] = true
	}
	p := &pass{Inventory: inv, now: now, rooms: map[string]*room{}}
	coming, moved := p.coming(still)
	machines = append(machines, moved...)
	for _, uid := range sortedKeys(r.by) {
		if g := r.by[uid]; !p.keeps(g, still[uid] || g.of != "") {
			delete(r.by, uid)
			machines = append(machines, g.machine)
		}
	}
	r.forget(now, still)
	r.early = 0
	for _, g := range r.by {
		if g.of != "" {
			r.early++
		}
	}
	for i := range waiters {
		t := &waiters[i]
		if !r.may(now, t.UID, t.kin) {
			continue
		}
		q := &quest{like: inv.asksOfPools(t.tenant), kin: t.kin}
		switch {
		case !q.claimed(inv, t.claims, nil, nil), q.nothing() && q.on != "":
			continue // a claim of it does not exist yet, or all of its claims get devices in a place that is kept already: no search is needed
		case q.nothing():
			r.resting[t.kin.shape] = now.Add(rests)
			continue
		}
		if p.looks++; p.looks > mostLooks {
			inv.rouse() // the rest have their turn in the next pass
			break
		}
		g, room := p.place(q)
		switch {
		case g != nil:
			r.by[t.UID] = g
			machines = append(machines, g.machine)
			delete(p.rooms, g.machine)
		case room:
			r.pausing[t.UID] = now.Add(time.Second)
		case q.on != "": // bound to one machine by a claim; Pods of its shape may find room elsewhere
			r.pausing[t.UID] = now.Add(rests)
		default:
			r.resting[t.kin.shape] = now.Add(rests)
		}
	}
	return append(machines, p.ahead(coming)...)
}

// waiters lists the Pods that wait, least recently tried first, then longest waiting: so one that finds nothing, however old, starves nobody. inv.mu is held.
func (inv *Inventory) waiters() []waiter {
	tenants := by[*tenant](inv.pods, byWaiting, waiting)
	list := make([]waiter, len(tenants))
	for i, t := range tenants {
		of := inv.kinOf(t)
		list[i] = waiter{t, of, inv.reclaims.due(t.UID, of.shape)}
	}
	slices.SortFunc(list, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.waits, b.waits), cmp.Compare(a.UID, b.UID))
	})
	return list
}

// pass is the state of one call of decide: rooms caches machines that were looked at, looks counts searches.
type pass struct {
	*Inventory
	now   quantity.Instant
	looks int
	rooms map[string]*room
}

// keeps reports whether a place is still to be kept: while its Pod waits, and for patience once it is free. The time that our own Pods there need to end does not count.
func (p *pass) keeps(g *reclaim, waits bool) bool {
	r := &p.reclaims
	if !waits {
		if t, there := get[*tenant](p.pods, g.waiter.Namespace+"/"+g.waiter.Name); there && t.machine != "" {
			delete(r.shunned, g.uid)
			delete(r.failed, g.kin)
		}
		return false
	}
	switch {
	case g.later():
		return true
	case g.open && p.now <= g.made.Add(opens):
		return true
	case g.open:
		r.come[g.of] = false
		return false
	}
	if slices.ContainsFunc(by[*tenant](p.pods, byMachine, g.machine), func(t *tenant) bool { return t.ours && slices.Contains(g.slices, t.slice) }) {
		if p.now <= g.at.Add(longest) {
			return true
		}
		r.vain(p.now, g)
		return false
	}
	if g.freed == 0 {
		g.freed = p.now
	}
	if p.now > g.freed.Add(patience) {
		r.vain(p.now, g)
		return false
	}
	return !p.taken(g)
}

// taken reports whether another Pod took the place: our subjobs are gone, and yet there is no room for the waiter. It happens since the scheduler tries new Pods at
// once and retries waiting ones after a back-off.
func (p *pass) taken(g *reclaim) bool {
	m, there := get[*machine](p.nodes, g.machine)
	q, known := p.questOf(g)
	if !there || !known {
		return !there
	}
	room := p.room(m)
	room.gives = slices.DeleteFunc(slices.Clone(room.gives), func(o *reclaim) bool { return o == g })
	more, _, ok := room.find(q.like, q.wants)
	return !ok || len(more.slices) > 0
}

// place finds the machine where making room for a Pod loses least; nil if there is none. With room set there seems to be room already, and the scheduler gets its longest
// back-off to use it; after that the Pod is taken to be kept out there for a reason not modelled here, and room is made elsewhere. Machines where a place was kept in vain for Pods of its kin come last.
func (p *pass) place(q *quest) (best *reclaim, room bool) {
	t, names := q.like, []string{q.on}
	if q.on == "" {
		names = p.pods.GetIndexer().ListIndexFuncValues(byOurs)
		slices.Sort(names)
	}
	var failed []string
	if f := p.reclaims.failed[q.kin]; f != nil {
		failed = f.machines
	}
	since, roomy := p.reclaims.roomy[t.UID]
	seen := false
	var last *reclaim
	var least, lastCost giveback.Cost
	better := func(g *reclaim, cost giveback.Cost, best **reclaim, least *giveback.Cost) {
		if *best == nil || cmp.Or(cost.Compare(*least), cmp.Compare(g.machine, (*best).machine)) < 0 {
			*best, *least = g, cost
		}
	}
	from, fits := uint64(crc32.ChecksumIEEE([]byte(t.UID)))+uint64(p.now.Sub(0)/rests)*mostMachines, 0 // Pods begin at different machines, and each elsewhere next time
	for i := range names {
		m, there := get[*machine](p.nodes, names[(from+uint64(i))%uint64(len(names))])
		if !there || !t.mayRunOn(m) {
			continue
		}
		if p.rooms[m.Name] == nil {
			p.rooms[m.Name] = p.room(m)
		}
		g, cost, ok := p.rooms[m.Name].find(t, q.wants)
		switch {
		case !ok:
		case len(g.slices) == 0:
			seen = true
		case slices.Contains(failed, m.Name):
			better(g, cost, &last, &lastCost)
		default:
			better(g, cost, &best, &least)
		}
		if fits++; fits >= mostMachines || fits >= enough && best != nil {
			break
		}
	}
	switch {
	case !seen:
		delete(p.reclaims.roomy, t.UID)
	case !roomy:
		p.reclaims.roomy[t.UID] = p.now
		return nil, true
	case p.now < since.Add(pauses):
		return nil, true
	}
	if best == nil {
		best = last
	}
	if best != nil {
		best.kin, best.claims = q.kin, q.claims
	}
	return best, false
}

// Indexes of Pods: those that wait, and our own by machine.
const (
	byWaiting = "waiting"
	waiting   = "yes"
	byOurs    = "ours"
)

func waits() cache.IndexFunc {
	return index(func(t *tenant) []string {
		if t.waits == 0 || t.ours || t.fills || t.queued || t.nominated {
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
