//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/inventory"
)

// told is what was last reported. Invariant: a listener to every report since the inventory was opened, or to all and every report since,
// knows what is in here and no more. Guarded by Inventory.mu.
type told struct {
	// closures are the times that others have of slices, faults those reported of slices' GPUs; most slices have none.
	closures map[job.SliceID][]protocol.Reservation
	faults   map[job.SliceID][]health.State
	machines map[string]*reclaim.Machine
	wishes   map[reclaim.ID]*toldWish
	groups   map[reclaim.ID]reclaim.Group
	// generation increments when what objects are translated by changes: pools and DeviceClasses. A wish with an older one is stale.
	generation int
}

// toldWish is a wish with what it was translated from: while that is the same the wish is.
type toldWish struct {
	reclaim.Wish
	pod        *pod
	claims     []*claim
	member     member
	generation int
}

func newTold() told {
	return told{
		closures: map[job.SliceID][]protocol.Reservation{}, faults: map[job.SliceID][]health.State{},
		machines: map[string]*reclaim.Machine{},
		wishes:   map[reclaim.ID]*toldWish{}, groups: map[reclaim.ID]reclaim.Group{},
	}
}

// noteClosures notes all that others have of a slice; true: it is new.
func (d *told) noteClosures(id job.SliceID, closures []protocol.Reservation) bool {
	is := !reflect.DeepEqual(d.closures[id], closures) && len(d.closures[id])+len(closures) > 0
	if d.closures[id] = closures; len(closures) == 0 {
		delete(d.closures, id)
	}
	return is
}

// noteFaults notes the faults of a slice's GPU, and reports whether they are new.
func (d *told) noteFaults(id job.SliceID, states []health.State) bool {
	is := !slices.Equal(d.faults[id], states)
	if d.faults[id] = states; len(states) == 0 {
		delete(d.faults, id)
	}
	return is
}

// machine notes all of one, nil if it is gone, and enters it into news if it is new.
func (d *told) machine(name string, m *reclaim.Machine, news *protocol.Wishes) {
	was, known := d.machines[name]
	switch {
	case m == nil && known:
		delete(d.machines, name)
		news.Lost = append(news.Lost, name)
	case m != nil && (!known || !reflect.DeepEqual(was, m)):
		d.machines[name] = m
		news.Machines = append(news.Machines, *m)
	}
}

// noteWaiters notes all that wait and the groups that are to come, and enters what is new into news.
func (d *told) noteWaiters(w *translator, now quantity.Instant, news *protocol.Wishes) {
	groups, members := w.groups(now)
	is := map[reclaim.ID]bool{}
	for _, g := range groups {
		is[g.ID] = true
		if was, known := d.groups[g.ID]; !known || !reflect.DeepEqual(was, g) {
			d.groups[g.ID] = g
			news.Groups = append(news.Groups, g)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.groups)) {
		if !is[id] {
			delete(d.groups, id)
			news.Disbanded = append(news.Disbanded, id)
		}
	}
	clear(is)
	for _, t := range by[*pod](w.of.pods, byWaiting, waiting) {
		id := reclaim.ID(t.UID)
		is[id] = true
		x := &toldWish{pod: t, member: members[t.UID], generation: d.generation}
		for _, key := range t.need.claims {
			c, _ := get[*claim](w.of.claims, key)
			x.claims = append(x.claims, c)
		}
		was := d.wishes[id]
		if was != nil && was.pod == t && was.member == x.member && was.generation == x.generation && slices.Equal(was.claims, x.claims) {
			continue
		}
		x.Wish = w.wish(t)
		x.Group, x.Part = x.member.group, x.member.part
		if d.wishes[id] = x; was == nil || !reflect.DeepEqual(was.Wish, x.Wish) {
			news.Wishes = append(news.Wishes, x.Wish)
		}
	}
	slices.SortFunc(news.Wishes, func(a, b reclaim.Wish) int { return cmp.Compare(a.ID, b.ID) })
	for _, id := range slices.Sorted(maps.Keys(d.wishes)) {
		if !is[id] {
			now, there := get[*pod](w.of.pods, d.wishes[id].pod.Namespace+"/"+d.wishes[id].pod.Name)
			news.Dropped = append(news.Dropped, protocol.Dropped{ID: id, Served: there && now.machine != ""})
			delete(d.wishes, id)
		}
	}
}

// all is the full report, for a listener that has none yet.
func (d *told) all() (list []inventory.Sighting) {
	for _, id := range slices.Sorted(maps.Keys(d.closures)) {
		list = append(list, inventory.Sighting{Slice: id, Closures: slices.Clone(d.closures[id])})
	}
	for _, id := range slices.Sorted(maps.Keys(d.faults)) {
		list = append(list, vitals(id, d.faults[id]))
	}
	var w protocol.Wishes
	for _, name := range slices.Sorted(maps.Keys(d.machines)) {
		w.Machines = append(w.Machines, *d.machines[name])
	}
	for _, id := range slices.Sorted(maps.Keys(d.wishes)) {
		w.Wishes = append(w.Wishes, d.wishes[id].Wish)
	}
	for _, id := range slices.Sorted(maps.Keys(d.groups)) {
		w.Groups = append(w.Groups, d.groups[id])
	}
	return append(list, inParts(&w)...)
}

// mostTold bounds the machines, wishes and groups of one report.
const mostTold = 256

// inParts splits news into reports of bounded length, machines first; none if there are none.
func inParts(w *protocol.Wishes) (list []inventory.Sighting) {
	if n := len(w.Machines) + len(w.Wishes) + len(w.Groups); n <= mostTold {
		if n+len(w.Lost)+len(w.Dropped)+len(w.Disbanded) > 0 {
			list = append(list, inventory.Sighting{Wishes: w})
		}
		return list
	}
	part := func(p protocol.Wishes) { list = append(list, inventory.Sighting{Wishes: &p}) }
	for some := range slices.Chunk(w.Machines, mostTold) {
		part(protocol.Wishes{Machines: some})
	}
	for some := range slices.Chunk(w.Wishes, mostTold) {
		part(protocol.Wishes{Wishes: some})
	}
	for some := range slices.Chunk(w.Groups, mostTold) {
		part(protocol.Wishes{Groups: some})
	}
	if len(w.Lost)+len(w.Dropped)+len(w.Disbanded) > 0 {
		part(protocol.Wishes{Lost: w.Lost, Dropped: w.Dropped, Disbanded: w.Disbanded})
	}
	return list
}
