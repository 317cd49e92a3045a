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

// survey is what is known of the slices' time from plan to plan, so that a place is looked for only where time has become
// another. It rests on this: as long as nothing changes on a node, the places there only get worse while time goes by. So a
// place that still stands is beaten by none that it was not beaten by before, but for those on altered nodes.
type survey struct {
	// nodes by id. strange: they are to be listed anew. joined: slices have come since the last plan.
	nodes           []*node
	strange, joined bool
	openings        openings
	// plain: the openings are not looked at, but all nodes are. It is for tests.
	plain bool
	// shifted are the slices that may have changed since the last plan, altered the nodes that have, places taken or given
	// back by the reserved jobs before in this plan included.
	shifted, altered bitset.Set
	// nth counts the plans.
	nth uint64
	// The rest is room for what is looked at.
	fits  []bool
	rooms []room
	// spareRooms and spareGaps too.
	spareRooms [][]protocol.Gap
	spareGaps  []protocol.Gap
	starts     []quantity.Instant
	speeds     []int64
}

// node is one machine: its place among the nodes, and its slices from the smallest on.
type node struct {
	at     int
	slices []*Slice
	// rack and block that it stands in.
	rack, block string
	// listed are its openings of every kind, as they were entered; unlisted: some of its time may have become another since.
	listed   [][]opening
	unlisted dirty.Mark
}

// replanGain is how much earlier a reserved job must be able to end before its place is moved.
const replanGain = time.Second

// look finds the nodes on which time has become another since the last plan.
func (pl *Planner) look(now quantity.Instant) {
	pl.altered.Clear()
	pl.nth++
	if pl.strange {
		pl.sortNodes()
		for i := range pl.slices {
			pl.shifted.Put(i)
		}
	}
	if pl.strange || pl.joined {
		pl.strange, pl.joined = false, false
		pl.nth++ // no plan is the one before
	}
	for i := pl.shifted.Next(0); i >= 0; i = pl.shifted.Next(i + 1) {
		pl.shifted.Drop(i)
		s := pl.slices[i]
		fresh := s.Free(now, pl.spareGaps)
		if s.Class() != s.surveyedClass || !sameTime(now, s.surveyed, fresh) {
			pl.altered.Put(s.node.at)
			pl.openings.changed(s.node)
		}
		s.surveyed, s.surveyedClass, pl.spareGaps = fresh, s.Class(), s.surveyed
	}
	pl.openings.keepUp()
}

// sameTime says whether two lists of gaps, the first of an earlier instant, leave the same from now on.
func sameTime(now quantity.Instant, a, b []protocol.Gap) bool {
	for len(a) > 0 && a[0].End <= now {
		a = a[1:]
	}
	return slices.EqualFunc(a, b, func(g, h protocol.Gap) bool { return max(now, g.Start) == max(now, h.Start) && g.End == h.End })
}

// sortNodes lists the slices of every node from the smallest on, the nodes by id.
func (pl *Planner) sortNodes() {
	if !pl.strange {
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

// nodesOf lists the slices of every node in the order given, the nodes by id.
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

// join enters a new slice at its node, unless all are listed anew anyway.
func (pl *Planner) join(s *Slice) {
	pl.joined = true
	if pl.strange {
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

// alter says that a place was taken or given back.
func (pl *Planner) alter(p *Placement) {
	for _, s := range p.Slices {
		pl.altered.Put(s.node.at)
	}
}

// find finds a rigid job's place around those of the reserved jobs before it: the one it had, if all of that is still to be had
// and no other would let the job end clearly earlier, else the earliest. A place given up for one as good could be lost to
// somebody on the way, and one that follows the clock or a jitter of views would never come to rest. So a reserved job's place on
// slices in doubt is kept until it is to begin: by then what is known of them is likely to be right again, or it has none there.
func (pl *Planner) find(now quantity.Instant, j *Job, most int) bool {
	p, had := &j.place, len(j.place.Slices) > 0
	known := j.lookedAt != 0 && j.lookedAt == pl.nth-1 && j.Guest == nil // what a guest wants moves, and so do those before it
	j.lookedAt = pl.nth
	if j.taking() {
		return true
	}
	from := j.from(now)
	holds := had && j.holds(now) && (p.Start > now || !p.inDoubt(now))
	if known && (!had || holds) && pl.altered.Next(0) < 0 {
		return had
	}
	pl.findFits(now, j)
	kept := holds && (known && !pl.alters(p) || pl.stands(now, j))
	var best Placement
	found := false
	switch {
	case j.Guest != nil:
		best, found = pl.lend(from, j)
	case j.spreads():
		best, found = pl.closest(now, j)
	case known && (kept || !had):
		for n := pl.altered.Next(0); n >= 0; n = pl.altered.Next(n + 1) {
			best, found = pl.earlier(now, j, pl.nodes[n], best, found)
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

// alters says whether a node of a place is altered.
func (pl *Planner) alters(p *Placement) bool {
	return slices.ContainsFunc(p.Slices, func(s *Slice) bool { return pl.altered.Has(s.node.at) })
}

// scan looks for the earliest place on every node.
func (pl *Planner) scan(now quantity.Instant, j *Job) (best Placement, found bool) {
	for _, n := range pl.nodes {
		best, found = pl.earlier(now, j, n, best, found)
	}
	return best, found
}

// findFits finds the classes of slices that a job can run on.
func (pl *Planner) findFits(now quantity.Instant, j *Job) {
	v := j.View()
	pl.fits = pl.fits[:0]
	for _, c := range pl.floor.Classes() {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), Start: now, End: quantity.Never})
		pl.fits = append(pl.fits, r.Why == atomizer.Interested)
	}
}

// stands says whether all of the place that a job had is still to be had. Of a slice in doubt nobody knows: there it stands if it was
// reserved.
func (pl *Planner) stands(now quantity.Instant, j *Job) bool {
	p := &j.place
	p.Speed = math.MaxInt64
	for _, s := range p.Slices {
		r := room{gaps: pl.roomFor(s, 0)}
		free := r.free(j.since(now), p.End) || j.was > 0 && s.InDoubt(now)
		if !pl.fits[s.Class().At()] || !free || j.Avoids(s) {
			return false
		}
		p.Speed = min(p.Speed, s.Class().SpeedOf(j.Spec()))
	}
	return p.Speed > 0 && endAt(j.Spec(), p.Start, p.Speed) <= p.End
}

// earlier is the better one of best and of the earliest place on the slices of one node: the one that ends first, at the
// first instant at which enough slices are free for as long as the job takes on the slowest of them. Without speeds of its
// own it takes as long everywhere, and the earliest end is the earliest start. On a tie, the smallest slices that hold it.
func (pl *Planner) earlier(now quantity.Instant, j *Job, n *node, best Placement, found bool) (Placement, bool) {
	if len(n.slices) < j.width() {
		return best, found
	}
	pl.rooms = pl.rooms[:0]
	for i, s := range n.slices {
		if pl.fits[s.Class().At()] && len(s.surveyed) > 0 && !j.Avoids(s) {
			pl.rooms = append(pl.rooms, room{s, s.Class().SpeedOf(j.Spec()), pl.roomFor(s, i)})
		}
	}
	return pl.better(now, j, best, found)
}

// better is the better one of best and of the earliest place in the rooms at hand.
func (pl *Planner) better(now quantity.Instant, j *Job, best Placement, found bool) (Placement, bool) {
	if len(pl.rooms) < j.width() {
		return best, found
	}
	if p, ok := pl.earliestOf(now, j.Spec(), pl.rooms); ok && (!found || p.before(&best)) {
		return p, true
	}
	return best, found
}

// roomFor is the slice's free time for a rigid job: all that is not kept for a reserved job before it, since the places of those
// behind give way. It is good until the next call with the same i.
func (pl *Planner) roomFor(s *Slice, i int) []protocol.Gap {
	if len(s.kept) == 0 {
		return s.surveyed
	}
	for len(pl.spareRooms) <= i {
		pl.spareRooms = append(pl.spareRooms, nil)
	}
	gaps := append(pl.spareRooms[i][:0], s.surveyed...)
	for _, b := range s.kept {
		gaps = timeline.Carve(gaps, b.Start, b.End, protocol.ForRigid)
	}
	pl.spareRooms[i] = gaps
	return gaps
}

// Place takes in where the floor has put a slice.
func (pl *Planner) Place(s *Slice, placed market.Placed) {
	switch placed {
	case market.Joined:
		pl.slices = slices.Insert(pl.slices, s.At(), s)
		pl.holding.Insert(s.At())
		pl.shifted.Insert(s.At())
		pl.join(s)
	case market.Sorted:
		pl.slices = append(pl.slices, s)
		slices.SortFunc(pl.slices, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		pl.strange = true
		pl.holding.Clear()
		pl.shifted.Clear() // the next plan looks at all of them
		for _, s := range pl.slices {
			pl.Seen(s)
		}
		pl.join(s)
	case market.Stayed:
	}
}

// Moved says that a slice is of another node than before.
func (pl *Planner) Moved() { pl.strange = true }

// Nodes are the slices of every node from the smallest on, the nodes by id. They are only read, and good until the next Place.
func (pl *Planner) Nodes() (list [][]*Slice) {
	if pl.strange {
		return nodesOf(pl.slices)
	}
	for _, n := range pl.nodes {
		list = append(list, n.slices)
	}
	return list
}

// Search looks for a job's placement on some nodes, given when each slice is free. It changes nothing that is decided.
func (pl *Planner) Search(now quantity.Instant, j *Job, nodes [][]*Slice, free func(*Slice) []protocol.Gap) (best Placement, found bool) {
	pl.findFits(now, j)
	for _, node := range nodes {
		pl.rooms = pl.rooms[:0]
		for _, s := range node {
			if pl.fits[s.Class().At()] {
				pl.rooms = append(pl.rooms, room{s, s.Class().SpeedOf(j.Spec()), free(s)})
			}
		}
		best, found = pl.better(now, j, best, found)
	}
	if !found {
		pl.sortNodes()
		best, found = pl.apart(now, j, free)
	}
	return best, found
}
