package backfill

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// survey caches each slice's free time between planning passes, so that a pass searches for placements only on nodes that changed.
// Sound because on a node where nothing changed placements only get worse as time goes by: one that is still available can be beaten
// only by one on a dirty node.
type survey struct {
	floor *market.Floor
	// slices in the floor's order.
	slices []*Slice
	// nodes by id. nodesStale: the list must be rebuilt. slicesJoined: slices were added since the last pass.
	nodes                    []*node
	nodesStale, slicesJoined bool
	openings                 openings
	// exhaustive searches every node instead of the index of openings. For tests.
	exhaustive bool
	// dirtySlices may have changed since the last pass, dirtyNodes did. Invariant: a slice outside dirtySlices has the gaps of the last
	// pass. Within a pass a node is dirty too once a job ahead in line has taken or given back a placement there.
	dirtySlices, dirtyNodes bitset.Set
	// generation counts the passes. A job that was searched for in an older one than the last has no usable result.
	generation uint64
	// Scratch buffers, reused to keep a pass free of allocation. Meaningless between calls.
	fits       []bool
	rooms      []room
	spareRooms [][]protocol.Gap
	spareGaps  []protocol.Gap
	starts     []quantity.Instant
	speeds     []int64
}

// replanGain is how much earlier a reserved job must be able to end before its placement is moved.
const replanGain = time.Second

// resurvey begins a pass: it finds the nodes whose free time has changed since the last one.
func (v *survey) resurvey(now quantity.Instant) {
	v.dirtyNodes.Clear()
	v.generation++
	if v.nodesStale {
		v.sortNodes()
		for i := range v.slices {
			v.dirtySlices.Put(i)
		}
	}
	if v.nodesStale || v.slicesJoined {
		v.nodesStale, v.slicesJoined = false, false
		v.generation++ // nobody's result of the last pass can be used
	}
	for i := v.dirtySlices.Next(0); i >= 0; i = v.dirtySlices.Next(i + 1) {
		v.dirtySlices.Drop(i)
		s := v.slices[i]
		fresh, doubt := s.Free(now, v.spareGaps), s.InDoubt(now)
		if s.Class() != s.surveyedClass || doubt != s.surveyedDoubt || !sameGapsFrom(now, s.surveyed, fresh) {
			v.dirtyNodes.Put(s.node.at)
			v.openings.invalidate(s.node)
		}
		s.surveyed, s.surveyedClass, s.surveyedDoubt, v.spareGaps = fresh, s.Class(), doubt, s.surveyed
	}
	v.openings.refreshOverflow()
}

// sameGapsFrom reports whether two lists of gaps, the first of an earlier instant, agree from now on.
func sameGapsFrom(now quantity.Instant, a, b []protocol.Gap) bool {
	for len(a) > 0 && a[0].End <= now {
		a = a[1:]
	}
	return slices.EqualFunc(a, b, func(g, h protocol.Gap) bool { return max(now, g.Start) == max(now, h.Start) && g.End == h.End })
}

// sortNodes rebuilds the list of nodes if it is stale.
func (v *survey) sortNodes() {
	if !v.nodesStale {
		return
	}
	v.nodes, v.openings = v.nodes[:0], openings{}
	for i, list := range nodesOf(v.slices) {
		n := &node{at: i, slices: list}
		for _, s := range list {
			s.node = n
		}
		v.nodes = append(v.nodes, n)
	}
}

// nodesOf groups slices by node, in the order given; the nodes are in the order of their ids.
func nodesOf(list []*Slice) (nodes [][]*Slice) {
	of := map[job.NodeID][]*Slice{}
	var ids []job.NodeID
	for _, s := range list {
		if of[s.Node()] == nil {
			ids = append(ids, s.Node())
		}
		of[s.Node()] = append(of[s.Node()], s)
	}
	slices.Sort(ids)
	for _, id := range ids {
		nodes = append(nodes, of[id])
	}
	return nodes
}

// join adds a new slice to its node, unless the list is to be rebuilt anyway.
func (v *survey) join(s *Slice) {
	v.slicesJoined = true
	if v.nodesStale {
		return
	}
	at, known := slices.BinarySearchFunc(v.nodes, s.Node(), func(n *node, id job.NodeID) int { return cmp.Compare(n.slices[0].Node(), id) })
	if known {
		s.node = v.nodes[at]
		i, _ := slices.BinarySearchFunc(s.node.slices, s, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		s.node.slices = slices.Insert(s.node.slices, i, s)
		return
	}
	s.node = &node{slices: []*Slice{s}}
	v.nodes = slices.Insert(v.nodes, at, s.node)
	for ; at < len(v.nodes); at++ {
		v.nodes[at].at = at
	}
}

// remove takes a slice out that is there no more. A job may have a placement on it until the next pass, which has no time there.
func (v *survey) remove(s *Slice) {
	v.slices = slices.Delete(v.slices, s.At(), s.At()+1)
	v.dirtySlices.Remove(s.At())
	clear(v.nodes)
	v.rooms = nil
	v.nodes, v.openings, v.nodesStale = v.nodes[:0], openings{}, true
	s.node, s.surveyed, s.surveyedDoubt, s.placed = nil, nil, false, nil
}

// removed says whether a slice that had a place in a plan is there no more.
func (s *Slice) removed() bool { return s.node == nil }

// markDirty marks the nodes of a placement that was taken or given back.
func (v *survey) markDirty(p *Placement) {
	for _, s := range p.Slices {
		if s.node != nil {
			v.dirtyNodes.Put(s.node.at)
		}
	}
}

// onDirtyNode reports whether a node of a placement is dirty.
func (v *survey) onDirtyNode(p *Placement) bool {
	return slices.ContainsFunc(p.Slices, func(s *Slice) bool { return s.node == nil || v.dirtyNodes.Has(s.node.at) })
}

// scan searches every node for the earliest placement.
func (v *survey) scan(now quantity.Instant, j *Job) (best Placement, found bool) {
	for _, n := range v.nodes {
		best, found = v.improveOnNode(now, j, n, best, found)
	}
	return best, found
}

// findFits sets fits: by class of slices, whether the job can run there.
func (v *survey) findFits(now quantity.Instant, j *Job) {
	view := j.View()
	v.fits = v.fits[:0]
	for _, c := range v.floor.Classes() {
		_, r := atomizer.Fit(&view, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), Start: now, End: quantity.Never})
		v.fits = append(v.fits, r.Why == atomizer.Interested)
	}
}

// stillAvailable reports whether the placement that a job had is still free. Of a slice in doubt nobody knows: there it counts as free if
// it was reserved.
func (v *survey) stillAvailable(now quantity.Instant, j *Job) bool {
	p := &j.place
	p.Speed = math.MaxInt64
	for _, s := range p.Slices {
		r := room{gaps: v.roomFor(s, 0)}
		free := r.free(j.since(now), p.End) || j.rankBefore > 0 && s.InDoubt(now)
		if !v.fits[s.Class().At()] || !free || j.Avoids(s) {
			return false
		}
		p.Speed = min(p.Speed, s.Class().SpeedOf(j.Spec()))
	}
	return p.Speed > 0 && endAt(j.Spec(), p.Start, p.Speed) <= p.End
}

// improveOnNode returns the better of best and the earliest placement on one node: the one that ends first, starting when
// enough slices are free for as long as the job takes on the slowest of them. A job without speeds takes as long everywhere, so its
// earliest end is its earliest start. Ties go to the smallest slices.
func (v *survey) improveOnNode(now quantity.Instant, j *Job, n *node, best Placement, found bool) (Placement, bool) {
	if len(n.slices) < j.width() {
		return best, found
	}
	v.rooms = v.rooms[:0]
	for i, s := range n.slices {
		if v.fits[s.Class().At()] && len(s.surveyed) > 0 && !j.Avoids(s) {
			v.rooms = append(v.rooms, room{s, s.Class().SpeedOf(j.Spec()), v.roomFor(s, i)})
		}
	}
	return v.improveInRooms(now, j, best, found)
}

// improveInRooms returns the better of best and the earliest placement in rooms.
func (v *survey) improveInRooms(now quantity.Instant, j *Job, best Placement, found bool) (Placement, bool) {
	if len(v.rooms) < j.width() {
		return best, found
	}
	if p, ok := v.earliestOf(now, j.Spec(), v.rooms); ok && (!found || p.before(&best)) {
		return p, true
	}
	return best, found
}

// roomFor returns the slice's free time for a rigid job: all but the placements of reserved jobs ahead of it, since those
// behind give way. Valid until the next call with the same i.
func (v *survey) roomFor(s *Slice, i int) []protocol.Gap {
	if len(s.placed) == 0 {
		return s.surveyed
	}
	for len(v.spareRooms) <= i {
		v.spareRooms = append(v.spareRooms, nil)
	}
	gaps := append(v.spareRooms[i][:0], s.surveyed...)
	for _, b := range s.placed {
		gaps = timeline.Carve(gaps, b.Start, b.End, protocol.ForRigid)
	}
	v.spareRooms[i] = gaps
	return gaps
}

// roomsFor returns roomFor for a search over several nodes that lists its candidates in rooms.
func (v *survey) roomsFor(j *Job) func(*Slice) []protocol.Gap {
	return func(s *Slice) []protocol.Gap {
		if len(s.surveyed) == 0 || j.Avoids(s) {
			return nil
		}
		return v.roomFor(s, len(v.rooms))
	}
}

// list returns the slices of each node, smallest first, in the order of the nodes' ids. Read only; valid until the next Place.
func (v *survey) list() (all [][]*Slice) {
	if v.nodesStale {
		return nodesOf(v.slices)
	}
	for _, n := range v.nodes {
		all = append(all, n.slices)
	}
	return all
}

// search finds a job's earliest placement on some nodes, given when each slice is free. It decides nothing.
func (v *survey) search(now quantity.Instant, j *Job, nodes [][]*Slice, free func(*Slice) []protocol.Gap) (best Placement, found bool) {
	v.findFits(now, j)
	for _, node := range nodes {
		v.rooms = v.rooms[:0]
		for _, s := range node {
			if v.fits[s.Class().At()] {
				v.rooms = append(v.rooms, room{s, s.Class().SpeedOf(j.Spec()), free(s)})
			}
		}
		best, found = v.improveInRooms(now, j, best, found)
	}
	if !found {
		v.sortNodes()
		best, found = v.apart(now, j, free)
	}
	return best, found
}

// within are the slices that stand together on a level, each from the smallest on.
func (v *survey) within(level job.Level) (list [][]*Slice) {
	if level == job.SameNode {
		return v.list()
	}
	v.sortNodes()
	v.locateNodes()
	for _, group := range v.groups(level) {
		var all []*Slice
		for _, n := range group {
			all = append(all, n.slices...)
		}
		slices.SortFunc(all, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		list = append(list, all)
	}
	return list
}

// reach is the most slices that could ever run a job together, as close as it asks for.
func (v *survey) reach(now quantity.Instant, j *Job) (most int) {
	v.findFits(now, j)
	for _, group := range v.within(j.Spec().Topology) {
		n := 0
		for _, s := range group {
			if v.fits[s.Class().At()] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// could is how many slices could ever run a job together, as far as nothing keeps them for good, wherever they lie.
func (v *survey) could(now quantity.Instant, j *Job) (n int) {
	v.findFits(now, j)
	for _, s := range v.slices {
		if v.fits[s.Class().At()] && !j.Avoids(s) && s.Lasting(now) {
			n++
		}
	}
	return n
}

// earliest finds the earliest of all places that a job could have, as scan does.
func (v *survey) earliest(now quantity.Instant, j *Job) (best Placement, found bool) {
	if v.exhaustive || !v.findWays(j) {
		return v.scan(now, j)
	}
	for _, w := range v.openings.ways {
		end, length := endAt(j.Spec(), now, w.speed), time.Duration(math.MaxInt64)
		if end != quantity.Never {
			length = end.Sub(now)
		}
		w.kind.advance(now)
		best, found = v.visit(now, j, w.speed, w.kind.begunOpenings.Within(-time.Duration(end)), best, found)
		best, found = v.visit(now, j, w.speed, w.kind.futureOpenings.Within(-length), best, found)
	}
	return best, found
}

// visit is the better one of best and of the earliest place on the nodes of a list of openings, in whose order no place is better than
// what its opening promises, nor that better than what was promised before. A tie goes to the first node.
func (v *survey) visit(now quantity.Instant, j *Job, speed int64, list func(func(opening) bool), best Placement, found bool) (Placement,
	bool) {
	for o := range list {
		if found {
			at := best.Slices[0].node
			if o.node == at {
				continue
			}
			start := max(now, o.start)
			bound := Placement{Start: start, End: endAt(j.Spec(), start, speed)}
			if cmp.Or(cmp.Compare(bound.rank(), best.rank()), cmp.Compare(o.largest, best.largest()), cmp.Compare(start, best.Start),
				cmp.Compare(o.node.at, at.at)) > 0 {
				break
			}
		}
		p, ok := v.improveOnNode(now, j, o.node, Placement{}, false)
		if ok && (!found || p.before(&best) || !best.before(&p) && o.node.at < best.Slices[0].node.at) {
			best, found = p, true
		}
	}
	return best, found
}

// findWays finds the ways in which a job could be placed, with their openings as they are now. A gang's slices may be of different
// classes, and it runs as fast as the slowest: for each speed it is asked for on all that are as fast. It returns whether all kinds
// are kept.
func (v *survey) findWays(j *Job) bool {
	x := &v.openings
	x.stale.Drain(x.refresh)
	x.ways = x.ways[:0]
	spec, width := j.Spec(), j.width()
	for _, c := range v.floor.Classes() {
		if speed := c.SpeedOf(spec); v.fits[c.At()] &&
			!slices.ContainsFunc(x.ways, func(w way) bool { return width > 1 && w.speed == speed }) {
			x.ways = append(x.ways, way{speed: speed})
			if width == 1 {
				x.ways[len(x.ways)-1].kind = v.single(c.At())
			}
		}
	}
	if width == 1 {
		return true
	}
	if len(spec.Speeds) == 0 && len(x.ways) > 0 { // as long on all of them
		x.ways = append(x.ways[:0], slices.MinFunc(x.ways, func(a, b way) int { return cmp.Compare(a.speed, b.speed) }))
	}
	for i := range x.ways {
		w := &x.ways[i]
		var classes bitset.Set
		for _, c := range v.floor.Classes() {
			if v.fits[c.At()] && c.SpeedOf(spec) >= w.speed {
				classes.Put(c.At())
			}
		}
		if w.kind = v.gang(width, classes); w.kind == nil {
			return false
		}
	}
	return true
}

// single is the kind of one slice of a class.
func (v *survey) single(class int) *kind {
	x := &v.openings
	for len(x.single) <= class {
		x.single = append(x.single, nil)
	}
	if x.single[class] == nil {
		var classes bitset.Set
		classes.Put(class)
		x.single[class] = v.newKind(1, classes)
	}
	return x.single[class]
}

// gang is the kind of several slices of these classes, nil if it is one too many.
func (v *survey) gang(width int, classes bitset.Set) *kind {
	x := &v.openings
	for _, k := range x.gangs {
		if k.width == width && k.classes.Equal(&classes) {
			return k
		}
	}
	if len(x.gangs) == mostGangs {
		return nil
	}
	x.gangs = append(x.gangs, v.newKind(width, classes))
	return x.gangs[len(x.gangs)-1]
}

// newKind enters the openings of one more kind.
func (v *survey) newKind(width int, classes bitset.Set) *kind {
	x := &v.openings
	k := &kind{at: len(x.kinds), width: width, classes: classes}
	x.kinds = append(x.kinds, k)
	for _, n := range v.nodes {
		x.findGaps(n)
		x.list(k, n)
	}
	return k
}

// location groups nodes at one level: a rack's name counts within its block.
type location struct{ block, rack string }

// groups of a level are the nodes that are together there, in the order of the first of each. A node without a name there is alone.
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

// closest finds the earliest placement of those whose nodes are closest together.
func (v *survey) closest(now quantity.Instant, j *Job) (Placement, bool) {
	best, found := v.earliest(now, j)
	if !found {
		best, found = v.apart(now, j, v.roomsFor(j))
	}
	return best, found
}

// apart finds the earliest place on several nodes of those that lie closest together, given when each slice is free.
func (v *survey) apart(now quantity.Instant, j *Job, free func(*Slice) []protocol.Gap) (best Placement, found bool) {
	if !j.spreads() {
		return best, false
	}
	v.locateNodes()
	for level := job.SameRack; !found && level <= min(j.Spec().Topology, job.SameZone); level++ {
		for _, group := range v.groups(level) {
			v.rooms = v.rooms[:0]
			for _, n := range group {
				for _, s := range n.slices {
					if v.fits[s.Class().At()] {
						v.rooms = append(v.rooms, room{s, s.Class().SpeedOf(j.Spec()), free(s)})
					}
				}
			}
			best, found = v.improveInRooms(now, j, best, found)
		}
		best.Level = level
	}
	return best, found
}

// earliestOf is the earliest place on slices, given from the smallest on of each node.
func (v *survey) earliestOf(now quantity.Instant, spec *job.Spec, rooms []room) (best Placement, found bool) {
	starts, speeds := v.starts[:0], v.speeds[:0] // fastest first; what is slower is not looked at with a faster one
	for _, r := range rooms {
		for _, g := range r.gaps {
			if g.End > now {
				starts = append(starts, max(now, g.Start))
			}
		}
		speeds = append(speeds, r.speed)
	}
	v.starts, v.speeds = starts, speeds
	slices.Sort(starts)
	slices.SortFunc(speeds, func(a, b int64) int { return cmp.Compare(b, a) })
	if speeds = slices.Compact(speeds); len(spec.Speeds) == 0 {
		speeds = speeds[len(speeds)-1:] // as long on all of them
	}
	for _, t := range slices.Compact(starts) {
		if earliest := (Placement{Start: t, End: endAt(spec, t, speeds[0])}); found && best.rank() < earliest.rank() {
			break
		}
		for _, least := range speeds {
			p, ok := placeAt(spec, rooms, t, least)
			if ok && (!found || p.before(&best)) {
				best, found = p, true
			}
			if ok {
				break
			}
		}
	}
	return best, found
}

// lend finds the earliest place of a guest from an instant on, as close together as it can be. Openings are by the present, and not looked
// at.
func (v *survey) lend(from quantity.Instant, j *Job) (Placement, bool) {
	best, found := v.scan(from, j)
	if !found {
		best, found = v.apart(from, j, v.roomsFor(j))
	}
	return best, found
}
