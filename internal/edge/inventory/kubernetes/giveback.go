//go:build kubernetes

package kubernetes

import (
	"cmp"
	"hash/crc32"
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

// reclaim is what is given back for one Pod that waits.
type reclaim struct {
	uid     types.UID
	waiter  *tenant
	machine string
	// devices that are kept for it, and how many of extended resources: what it asks for.
	devices []place
	counted bool
	// of is the Workload it is for, and part which of its Pods, while they are still to come; from when on and until when they will want it, 0 for now; made is since when
	// it stands, and open that nobody knows yet when they come: then nothing is cut short.
	of                types.UID
	part              int
	from, until, made quantity.Instant
	open              bool
	// closes are the slices that nobody is to have from then on.
	closes []job.SliceID
	// slices of ours whose subjobs are cut short, at an instant; freed is when none of ours was seen there any more, 0 before.
	slices    []job.SliceID
	at, freed quantity.Instant
	notice    time.Duration
}

// who waits, for people.
func (g *reclaim) who() string {
	return g.waiter.waitsFor()
}

func (t *tenant) waitsFor() string {
	return first(t.kind, "pod") + " " + t.Namespace + "/" + t.Name + ", which waits for it"
}

// later says whether it is wanted at a time that is known, and not now.
func (g *reclaim) later() bool { return g.from != 0 }

// shuts are the slices that it closes beside the devices that are kept.
func (g *reclaim) shuts() []job.SliceID {
	if g.later() {
		return g.closes
	}
	return g.slices
}

// holds close a slice at once, and cut short what runs there when its notice is over; or from when on it is wanted, which is told as soon as that is known.
func (g *reclaim) holds() []protocol.Reservation {
	switch {
	case g.later():
		return []protocol.Reservation{{Kind: protocol.ForReclaim, Start: g.from, End: g.until, Source: g.who(), Truncate: true}}
	case g.open:
		return []protocol.Reservation{{Kind: protocol.ForReclaim, End: quantity.Never, Source: g.who()}}
	}
	return []protocol.Reservation{
		{Kind: protocol.ForReclaim, End: quantity.Never, Source: g.who()},
		{Kind: protocol.ForReclaim, Start: g.at, End: quantity.Never, Source: g.who(), Truncate: true},
	}
}

// reclaims are all that stand, by the Pods they are for.
type reclaims struct {
	by map[types.UID]*reclaim
	// rests is until when nothing is looked for, for all Pods of an owner: there was none. shunned are owners for whom places were kept in vain, roomy since when there seems to
	// be room for a Pod.
	rests   map[types.UID]quantity.Instant
	shunned map[types.UID]shun
	roomy   map[types.UID]quantity.Instant
	// come are Workloads for whose Pods nothing is kept any more before they are there: all have come, or did not in time; false: something else held them back for too long. number tells places apart that are kept for Pods that are not there.
	come   map[types.UID]bool
	number int
	// early is how many are kept for Pods that are not there.
	early int
}

// shun is until when nothing is kept for the Pods of an owner, and how often that came to nothing.
type shun struct {
	until quantity.Instant
	times int
}

func newReclaims() reclaims {
	return reclaims{by: map[types.UID]*reclaim{}, rests: map[types.UID]quantity.Instant{}, shunned: map[types.UID]shun{}, roomy: map[types.UID]quantity.Instant{}, come: map[types.UID]bool{}}
}

// kin is what Pods that are alike have in common: their owner; of one without that itself.
func (t *tenant) kin() types.UID { return first(t.owner, t.UID) }

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

// may says whether a place may be looked for now for a Pod. For kin of whom one came to nothing it is one at a time.
func (r *reclaims) may(now quantity.Instant, t *tenant) bool {
	if r.by[t.UID] != nil || len(r.by)-r.early >= mostReclaims || now < r.rests[t.kin()] {
		return false
	}
	s, shunned := r.shunned[t.kin()]
	if !shunned {
		return true
	}
	if now < s.until {
		return false
	}
	for _, g := range r.by {
		if g.waiter.kin() == t.kin() {
			return false
		}
	}
	return true
}

// vain notes that a place was kept for nothing. The pause after it doubles each time.
func (r *reclaims) vain(now quantity.Instant, g *reclaim) {
	if g.of != "" {
		r.come[g.of] = true // of Pods that may yet come nothing is known, and nothing is held against them
		return
	}
	r.shun(now, g.waiter.kin())
}

// shun leaves Pods of an owner alone, or a Workload, each time for longer.
func (r *reclaims) shun(now quantity.Instant, whom types.UID) {
	s := r.shunned[whom]
	s.until = now.Add(min(leaves<<min(s.times, 10), mostLeaves))
	s.times++
	r.shunned[whom] = s
}

// forget lets go of what is known of Pods that wait no more.
func (r *reclaims) forget(now quantity.Instant, still map[types.UID]bool) {
	for uid := range r.roomy {
		if !still[uid] {
			delete(r.roomy, uid)
		}
	}
	for uid, until := range r.rests {
		if now >= until {
			delete(r.rests, uid)
		}
	}
	for uid, s := range r.shunned {
		if now >= s.until.Add(mostLeaves) {
			delete(r.shunned, uid)
		}
	}
}

// decide gives back for Pods that wait, and ends what was given for those that do not any more. It returns the machines on which that changes anything.
func (inv *Inventory) decide(now quantity.Instant) (machines []string) {
	r := &inv.reclaims
	waiters := by[*tenant](inv.pods, byWaiting, waiting)
	for i, t := range waiters {
		waiters[i] = inv.asksOfPools(t)
	}
	slices.SortFunc(waiters, func(a, b *tenant) int { return cmp.Or(cmp.Compare(a.waits, b.waits), cmp.Compare(a.UID, b.UID)) })
	still := map[types.UID]bool{}
	for _, t := range waiters {
		still[t.UID] = true
	}
	p := &pass{Inventory: inv, now: now, rooms: map[string]*room{}}
	coming, moved := p.coming(waiters)
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
	for _, t := range waiters {
		if !r.may(now, t) {
			continue
		}
		if p.looks++; p.looks > mostLooks {
			inv.rouse() // it is looked for the others next
			break
		}
		g, again := p.place(t)
		if g == nil {
			r.rests[t.kin()] = now.Add(again)
			continue
		}
		r.by[t.UID] = g
		machines = append(machines, g.machine)
		delete(p.rooms, g.machine)
	}
	return append(machines, p.ahead(coming)...)
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
			delete(r.shunned, t.kin())
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
	wants, known := p.wantsOf(g)
	if !there || !known {
		return !there
	}
	room := p.room(m)
	room.gives = slices.DeleteFunc(slices.Clone(room.gives), func(o *reclaim) bool { return o == g })
	more, _, ok := room.find(g.waiter, wants)
	return !ok || len(more.slices) > 0
}

// place finds the machine where room for a Pod that waits costs least; nil: none is known, and it is looked for again after a while. Where there seems to be room the
// scheduler is about to see that; if it has not within its longest pause, the Pod can't go there for what is not looked at here.
func (p *pass) place(t *tenant) (_ *reclaim, again time.Duration) {
	wants, known := p.wants(t)
	if !known {
		return nil, 0 // a claim of it is about to be made, and that is heard
	}
	if len(wants)+len(t.asks) == 0 || slices.ContainsFunc(wants, func(w want) bool { return !p.knows(w.class) }) {
		return nil, rests
	}
	names := p.pods.GetIndexer().ListIndexFuncValues(byOurs)
	slices.Sort(names)
	since, roomy := p.reclaims.roomy[t.UID]
	seen := false
	var best *reclaim
	var least giveback.Cost
	from, fits := uint64(crc32.ChecksumIEEE([]byte(t.UID)))+uint64(p.now.Sub(0)/rests)*mostMachines, 0 // not all begin with the same, nor one always
	for i := range names {
		m, there := get[*machine](p.nodes, names[(from+uint64(i))%uint64(len(names))])
		if !there || !t.mayRunOn(m) {
			continue
		}
		if p.rooms[m.Name] == nil {
			p.rooms[m.Name] = p.room(m)
		}
		g, cost, ok := p.rooms[m.Name].find(t, wants)
		switch {
		case !ok:
		case len(g.slices) == 0:
			seen = true
		case best == nil || cmp.Or(cost.Compare(least), cmp.Compare(g.machine, best.machine)) < 0:
			best, least = g, cost
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
		return nil, time.Second
	case p.now < since.Add(pauses):
		return nil, time.Second
	}
	return best, rests
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

// knows says whether devices of a class may be of a driver that a pool names.
func (inv *Inventory) knows(name string) bool {
	c, there := get[*class](inv.classes, name)
	for i := range inv.opts.Pools {
		for _, of := range inv.opts.Pools[i].Classes {
			other := slices.ContainsFunc(c.terms(), func(t term) bool { return t.kind == ofDriver && (of.Driver == t.value) != (t.op == "==") })
			if there && !other || of.Name == name {
				return true
			}
		}
	}
	return false
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
