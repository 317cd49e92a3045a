package backfill

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/dirty"
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

// node is one machine: its index among the nodes, and its slices, smallest first.
type node struct {
	at     int
	slices []*Slice
	// rack and block that it stands in.
	rack, block string
	// openings by kind, as they are indexed; openingsStale: its free time may have changed since.
	openings      [][]opening
	openingsStale dirty.Mark
}

// replanGain is how much earlier a reserved job must be able to end before its placement is moved.
const replanGain = time.Second

// resurvey begins a pass: it finds the nodes whose free time has changed since the last one.
func (pl *Planner) resurvey(now quantity.Instant) {
	pl.dirtyNodes.Clear()
	pl.generation++
	if pl.nodesStale {
		pl.sortNodes()
		for i := range pl.slices {
			pl.dirtySlices.Put(i)
		}
	}
	if pl.nodesStale || pl.slicesJoined {
		pl.nodesStale, pl.slicesJoined = false, false
		pl.generation++ // nobody's result of the last pass can be used
	}
	for i := pl.dirtySlices.Next(0); i >= 0; i = pl.dirtySlices.Next(i + 1) {
		pl.dirtySlices.Drop(i)
		s := pl.slices[i]
		fresh := s.Free(now, pl.spareGaps)
		if s.Class() != s.surveyedClass || !sameGapsFrom(now, s.surveyed, fresh) {
			pl.dirtyNodes.Put(s.node.at)
			pl.openings.invalidate(s.node)
		}
		s.surveyed, s.surveyedClass, pl.spareGaps = fresh, s.Class(), s.surveyed
	}
	pl.openings.refreshOverflow()
}

// sameGapsFrom reports whether two lists of gaps, the first of an earlier instant, agree from now on.
func sameGapsFrom(now quantity.Instant, a, b []protocol.Gap) bool {
	for len(a) > 0 && a[0].End <= now {
		a = a[1:]
	}
	return slices.EqualFunc(a, b, func(g, h protocol.Gap) bool { return max(now, g.Start) == max(now, h.Start) && g.End == h.End })
}

// sortNodes rebuilds the list of nodes if it is stale.
func (pl *Planner) sortNodes() {
	if !pl.nodesStale {
		return
	}
	pl.nodes, pl.openings = pl.nodes[:0], openings{}
	for i, list := range nodesOf(pl.slices) {
		n := &node{at: i, slices: list}
		for _, s := range list {
			s.node = n
		}
		pl.nodes = append(pl.nodes, n)
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
func (pl *Planner) join(s *Slice) {
	pl.slicesJoined = true
	if pl.nodesStale {
		return
	}
	at, known := slices.BinarySearchFunc(pl.nodes, s.Node(), func(n *node, id job.NodeID) int { return cmp.Compare(n.slices[0].Node(), id) })
	if known {
		s.node = pl.nodes[at]
		i, _ := slices.BinarySearchFunc(s.node.slices, s, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		s.node.slices = slices.Insert(s.node.slices, i, s)
		return
	}
	s.node = &node{slices: []*Slice{s}}
	pl.nodes = slices.Insert(pl.nodes, at, s.node)
	for ; at < len(pl.nodes); at++ {
		pl.nodes[at].at = at
	}
}

// markDirty marks the nodes of a placement that was taken or given back.
func (pl *Planner) markDirty(p *Placement) {
	for _, s := range p.Slices {
		pl.dirtyNodes.Put(s.node.at)
	}
}

// findPlacement searches for a rigid job's placement around those of the reserved jobs ahead of it. It keeps the one the job has while that
// is available and no other would let the job end earlier by replanGain: a placement given up for one as good could be lost to somebody
// on the way, and one that follows the clock or the jitter of views would never settle. For the same reason a placement on
// slices in doubt is kept until it is to begin: by then the node is likely to have been heard.
func (pl *Planner) findPlacement(now quantity.Instant, j *Job, most int) bool {
	p, had := &j.place, len(j.place.Slices) > 0
	known := j.searchedIn != 0 && j.searchedIn == pl.generation-1 && j.Guest == nil // a guest's start moves, and so do those ahead of it
	if known {
		pl.giveBackAhead(j)
	}
	j.searchedIn, j.ahead = pl.generation, len(pl.reserved)
	if j.taking() {
		return true
	}
	from := j.from(now)
	holds := had && j.holds(now) && (p.Start > now || !p.inDoubt(now))
	if known && (!had || holds) && pl.dirtyNodes.Next(0) < 0 {
		return had
	}
	pl.findFits(now, j)
	kept := holds && (known && !pl.onDirtyNode(p) || pl.stillAvailable(now, j))
	var best Placement
	found := false
	switch {
	case j.Guest != nil:
		best, found = pl.lend(from, j)
	case j.spreads():
		best, found = pl.closest(now, j)
	case known && (kept || !had):
		for n := pl.dirtyNodes.Next(0); n >= 0; n = pl.dirtyNodes.Next(n + 1) {
			best, found = pl.improveOnNode(now, j, pl.nodes[n], best, found)
		}
	default:
		best, found = pl.earliest(now, j)
	}
	gain := replanGain
	if most == 0 {
		gain = 1 // nothing is reserved that could be lost
	}
	if kept && (!found || best.Level >= p.Level && p.rank().Sub(best.rank()) < gain) {
		return true
	}
	*p = best
	return found
}

// giveBackAhead marks the nodes of the reserved jobs that were ahead of a job when it was searched for last, and are not ahead of it now: a gang that
// has become late is served before those whose slices are worth more with them.
func (pl *Planner) giveBackAhead(j *Job) {
	for ; pl.lookedBack < j.ahead; pl.lookedBack++ {
		if h := &pl.before[pl.lookedBack]; h.job.rank == 0 {
			pl.markDirty(&h.place)
		}
	}
}

// onDirtyNode reports whether a node of a placement is dirty.
func (pl *Planner) onDirtyNode(p *Placement) bool {
	return slices.ContainsFunc(p.Slices, func(s *Slice) bool { return pl.dirtyNodes.Has(s.node.at) })
}

// scan searches every node for the earliest placement.
func (pl *Planner) scan(now quantity.Instant, j *Job) (best Placement, found bool) {
	for _, n := range pl.nodes {
		best, found = pl.improveOnNode(now, j, n, best, found)
	}
	return best, found
}

// findFits sets fits: by class of slices, whether the job can run there.
func (pl *Planner) findFits(now quantity.Instant, j *Job) {
	v := j.View()
	pl.fits = pl.fits[:0]
	for _, c := range pl.floor.Classes() {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), Start: now, End: quantity.Never})
		pl.fits = append(pl.fits, r.Why == atomizer.Interested)
	}
}

// stillAvailable reports whether the placement that a job had is still free. Of a slice in doubt nobody knows: there it counts as free if it
// was reserved.
func (pl *Planner) stillAvailable(now quantity.Instant, j *Job) bool {
	p := &j.place
	p.Speed = math.MaxInt64
	for _, s := range p.Slices {
		r := room{gaps: pl.roomFor(s, 0)}
		free := r.free(j.since(now), p.End) || j.rankBefore > 0 && s.InDoubt(now)
		if !pl.fits[s.Class().At()] || !free || j.Avoids(s) {
			return false
		}
		p.Speed = min(p.Speed, s.Class().SpeedOf(j.Spec()))
	}
	return p.Speed > 0 && endAt(j.Spec(), p.Start, p.Speed) <= p.End
}

// improveOnNode returns the better of best and the earliest placement on one node: the one that ends first, starting when
// enough slices are free for as long as the job takes on the slowest of them. A job without speeds takes as long everywhere, so its
// earliest end is its earliest start. Ties go to the smallest slices.
func (pl *Planner) improveOnNode(now quantity.Instant, j *Job, n *node, best Placement, found bool) (Placement, bool) {
	if len(n.slices) < j.width() {
		return best, found
	}
	pl.rooms = pl.rooms[:0]
	for i, s := range n.slices {
		if pl.fits[s.Class().At()] && len(s.surveyed) > 0 && !j.Avoids(s) {
			pl.rooms = append(pl.rooms, room{s, s.Class().SpeedOf(j.Spec()), pl.roomFor(s, i)})
		}
	}
	return pl.improveInRooms(now, j, best, found)
}

// improveInRooms returns the better of best and the earliest placement in rooms.
func (pl *Planner) improveInRooms(now quantity.Instant, j *Job, best Placement, found bool) (Placement, bool) {
	if len(pl.rooms) < j.width() {
		return best, found
	}
	if p, ok := pl.earliestOf(now, j.Spec(), pl.rooms); ok && (!found || p.before(&best)) {
		return p, true
	}
	return best, found
}

// roomFor returns the slice's free time for a rigid job: all but the placements of reserved jobs ahead of it, since those
// behind give way. Valid until the next call with the same i.
func (pl *Planner) roomFor(s *Slice, i int) []protocol.Gap {
	if len(s.placed) == 0 {
		return s.surveyed
	}
	for len(pl.spareRooms) <= i {
		pl.spareRooms = append(pl.spareRooms, nil)
	}
	gaps := append(pl.spareRooms[i][:0], s.surveyed...)
	for _, b := range s.placed {
		gaps = timeline.Carve(gaps, b.Start, b.End, protocol.ForRigid)
	}
	pl.spareRooms[i] = gaps
	return gaps
}

// roomsFor returns roomFor for a search over several nodes that lists its candidates in rooms.
func (pl *Planner) roomsFor(j *Job) func(*Slice) []protocol.Gap {
	return func(s *Slice) []protocol.Gap {
		if len(s.surveyed) == 0 || j.Avoids(s) {
			return nil
		}
		return pl.roomFor(s, len(pl.rooms))
	}
}

// Place records where the floor has put a slice.
func (pl *Planner) Place(s *Slice, placed market.Placed) {
	switch placed {
	case market.Joined:
		pl.slices = slices.Insert(pl.slices, s.At(), s)
		pl.holding.Insert(s.At())
		pl.dirtySlices.Insert(s.At())
		pl.join(s)
	case market.Sorted:
		pl.slices = append(pl.slices, s)
		slices.SortFunc(pl.slices, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		pl.nodesStale = true
		pl.holding.Clear()
		pl.dirtySlices.Clear() // the next plan looks at all of them
		for _, s := range pl.slices {
			pl.Seen(s)
		}
		pl.join(s)
	case market.Stayed:
	}
}

// Moved invalidates the list of nodes: a slice belongs to another one than before.
func (pl *Planner) Moved() { pl.nodesStale = true }

// Nodes returns the slices of each node, smallest first, in the order of the nodes' ids. Read only; valid until the next Place.
func (pl *Planner) Nodes() (list [][]*Slice) {
	if pl.nodesStale {
		return nodesOf(pl.slices)
	}
	for _, n := range pl.nodes {
		list = append(list, n.slices)
	}
	return list
}

// Search finds a job's earliest placement on some nodes, given when each slice is free. It decides nothing.
func (pl *Planner) Search(now quantity.Instant, j *Job, nodes [][]*Slice, free func(*Slice) []protocol.Gap) (best Placement, found bool) {
	pl.findFits(now, j)
	for _, node := range nodes {
		pl.rooms = pl.rooms[:0]
		for _, s := range node {
			if pl.fits[s.Class().At()] {
				pl.rooms = append(pl.rooms, room{s, s.Class().SpeedOf(j.Spec()), free(s)})
			}
		}
		best, found = pl.improveInRooms(now, j, best, found)
	}
	if !found {
		pl.sortNodes()
		best, found = pl.apart(now, j, free)
	}
	return best, found
}
