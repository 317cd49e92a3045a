package backfill

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A gang that says so may lie on several nodes: of one rack, one block, or the zone; over several zones by what these lend (guest.go). It is placed as close together as it can be at all: on one
// node if there is a place on one, however late; else in the racks, and so on up to the level that it allows. Among places of one level the
// planner's order counts, and on a tie the fewest nodes.

// Spread says whether slices are of several nodes.
func Spread(on []*Slice) bool {
	return slices.ContainsFunc(on, func(s *Slice) bool { return s.Node() != on[0].Node() })
}

// spreads says whether a job may lie on several nodes.
func (j *Job) spreads() bool { return j.Spec().Topology > job.SameNode && j.width() > 1 }

// location groups nodes at one level: a rack's name counts within its block.
type location struct{ block, rack string }

// groups of a level are the nodes that stand together there, in the order of the first of each. What has no name stands alone.
func (v *survey) groups(level job.Level) (list [][]*node) {
	if level >= job.SameZone {
		return [][]*node{v.nodes}
	}
	at := map[location]int{}
	for _, n := range v.nodes {
		where := location{rack: n.rack, block: n.block}
		named := n.rack != ""
		if level == job.SameBlock {
			where.rack, named = "", n.block != ""
		}
		i, known := at[where]
		if !known || !named {
			i, list = len(list), append(list, nil)
			if named {
				at[where] = i
			}
		}
		list[i] = append(list[i], n)
	}
	return list
}

// locateNodes reads the nodes' racks and blocks from their slices.
func (v *survey) locateNodes() {
	for _, n := range v.nodes {
		n.rack, n.block = n.slices[0].Location()
	}
}

// closest finds the earliest place of those that lie closest together.
func (pl *Planner) closest(now quantity.Instant, j *Job) (Placement, bool) {
	best, found := pl.earliest(now, j)
	if !found {
		best, found = pl.apart(now, j, pl.roomsFor(j))
	}
	return best, found
}

// apart finds the earliest place on several nodes of those that lie closest together, given when each slice is free.
func (pl *Planner) apart(now quantity.Instant, j *Job, free func(*Slice) []protocol.Gap) (best Placement, found bool) {
	if !j.spreads() {
		return best, false
	}
	pl.locateNodes()
	for level := job.SameRack; !found && level <= min(j.Spec().Topology, job.SameZone); level++ {
		for _, group := range pl.groups(level) {
			pl.rooms = pl.rooms[:0]
			for _, n := range group {
				for _, s := range n.slices {
					if pl.fits[s.Class().At()] {
						pl.rooms = append(pl.rooms, room{s, s.Class().SpeedOf(j.Spec()), free(s)})
					}
				}
			}
			best, found = pl.improveInRooms(now, j, best, found)
		}
		best.Level = level
	}
	return best, found
}

// fewest are n of the rooms that are free for a time, on as few nodes as hold them: the node that has just enough of what is still wanted, else
// the one that has most. The rooms of a node stand together, from the smallest on.
func fewest(rooms []room, n int, least int64, start, end quantity.Instant) (taken []*room) {
	type part struct{ rooms []*room }
	var parts []part
	for i := range rooms {
		r := &rooms[i]
		if r.speed < least || !r.free(start, end) {
			continue
		}
		if last := len(parts) - 1; last < 0 || parts[last].rooms[0].s.Node() != r.s.Node() {
			parts = append(parts, part{})
		}
		last := &parts[len(parts)-1]
		last.rooms = append(last.rooms, r)
	}
	for len(taken) < n {
		want := n - len(taken)
		best := 0
		for i := range parts {
			if fit(len(parts[i].rooms), want) < fit(len(parts[best].rooms), want) {
				best = i
			}
		}
		taken = append(taken, parts[best].rooms[:min(want, len(parts[best].rooms))]...)
		parts = slices.Delete(parts, best, best+1)
	}
	return taken
}

// fit ranks how well a node with so many free slices serves what is wanted: the least that is enough first, else the most.
func fit(free, want int) int {
	if free >= want {
		return free - want
	}
	return want - free + 1<<30
}

// smallest is the slice of a place with the least capacity, the first of these.
func (p *Placement) smallest() *Slice {
	return slices.MinFunc(p.Slices, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
}

// Within are the slices that stand together on a level, each from the smallest on.
func (pl *Planner) Within(level job.Level) (list [][]*Slice) {
	if level == job.SameNode {
		return pl.Nodes()
	}
	pl.sortNodes()
	pl.locateNodes()
	for _, group := range pl.groups(level) {
		var all []*Slice
		for _, n := range group {
			all = append(all, n.slices...)
		}
		slices.SortFunc(all, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		list = append(list, all)
	}
	return list
}

// Reach is the most slices that could ever run a job together, as close as it asks for.
func (pl *Planner) Reach(now quantity.Instant, j *Job) (most int) {
	pl.findFits(now, j)
	for _, group := range pl.Within(j.Spec().Topology) {
		n := 0
		for _, s := range group {
			if pl.fits[s.Class().At()] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
