//go:build kubernetes

package kubernetes

import (
	"cmp"
	"hash/crc32"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/giveback"
	"sluice.dev/sluice/internal/core/quantity"
)

// Kubernetes preempts nobody for a device (DRA), and for extended resources at once and without notice. So a Pod of somebody else's for which no place is found is
// looked for here: where subjobs of ours hold what it waits for, those that cost least to stop are given notice, and their place is kept for it until it has one.

const (
	// patience is how long a place is kept, once it is free, for a Pod that does not come: then it waits for something that is not known here, and is left alone for a while,
	// and longer each time, up to mostLeaves. longest is how long after its notice a Pod of ours may take to go: it stores what it did.
	patience   = time.Minute
	leaves     = 10 * time.Minute
	mostLeaves = 6 * time.Hour
	longest    = 10 * time.Minute
	// pauses is how long the scheduler leaves a Pod alone at most, which it could place meanwhile, and a bit.
	pauses = 12 * time.Second
	// rests is after how long a place is looked for again where there was none.
	rests = 10 * time.Second
	// mostReclaims bounds for how many Pods that wait places are kept at once, mostLooks for how many one is looked for at a time. enough is on how many machines one is looked
	// for, of which the cheapest is cheap enough; mostMachines where none of those does, before the next ones have their turn. mostDevices is how many devices one Pod
	// may want.
	mostReclaims = 256
	mostLooks    = 4
	enough       = 128
	mostMachines = 512
	mostDevices  = 16
)

// waiter is a Pod that waits, and when its turn is.
type waiter struct {
	*tenant
	kin kin
	due quantity.Instant
}

// decide gives back for Pods that wait, and ends what was given for those that do not any more. It returns the machines on which that changes anything.
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
			continue // one of its claims is about to be made, or will never be; or a place is kept for others that it shares all of them with: neither costs a search
		case q.nothing():
			r.resting[t.kin.shape] = now.Add(rests)
			continue
		}
		if p.looks++; p.looks > mostLooks {
			inv.rouse() // it is looked for the others next
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
		case q.on != "": // on other machines those like it may find something
			r.pausing[t.UID] = now.Add(rests)
		default:
			r.resting[t.kin.shape] = now.Add(rests)
		}
	}
	return append(machines, p.ahead(coming)...)
}

// waiters are the Pods that wait, those first that were tried least recently, and of these who waits longest: who finds nothing, however long it has waited, keeps nobody from
// being tried. inv.mu is held.
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

// pass is one look at all who wait.
type pass struct {
	*Inventory
	now   quantity.Instant
	looks int
	rooms map[string]*room
}

// keeps says whether a place is still kept: as long as its Pod waits, but not for ever once it is free. What our own Pods there need to end, to store what they did,
// is not counted.
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

// taken says whether somebody else was faster: the subjobs that gave way for a Pod are gone, and without it there is no room for it on the machine any more. The
// scheduler looks at a Pod that waits with pauses, and at one that has just come at once.
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

// place finds the machine where room for a Pod that waits costs least; nil: none is known. Where there seems to be room the scheduler is about to see that; if it has not
// within its longest pause, the Pod can't go there for what is not looked at here. Machines where a place was kept in vain for a Pod like it count if there are no others.
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
	from, fits := uint64(crc32.ChecksumIEEE([]byte(t.UID)))+uint64(p.now.Sub(0)/rests)*mostMachines, 0 // not all begin with the same, nor one always
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

// Indexes of Pods: those that wait, and the machines on which ours are.
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
