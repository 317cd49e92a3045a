package zone

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// outlook is the place that was found for a rigid job, without slices if there is none, and the plan that found it.
type outlook struct {
	place    place
	lookedAt uint64
}

// survey is what is known of the slices' time from plan to plan, so that a place is looked for only where time has become
// another. It rests on this: as long as nothing changes on a node, the places there only get worse while time goes by. So a
// place that still stands is beaten by none that it was not beaten by before, but for those on altered nodes.
type survey struct {
	// nodes are the slices of every node, the nodes by id. strange: they are to be listed anew. joined: slices have come since the
	// last plan.
	nodes           [][]*slice
	strange, joined bool
	// shifted are the slices that may have changed since the last plan, altered the nodes that have, places taken or given
	// back by the heads before in this plan included.
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

// replanGain is how much earlier a head must be able to end before its place is moved.
const replanGain = time.Second

// look finds the nodes on which time has become another since the last plan.
func (z *Zone) look(now quantity.Instant) {
	clear(z.altered)
	z.nth++
	if z.strange {
		z.sortNodes()
		for i := range z.floor.Slices() {
			z.shifted.Put(i)
		}
	}
	if z.strange || z.joined {
		z.strange, z.joined = false, false
		z.nth++ // no plan is the one before
	}
	for i := z.shifted.Next(0); i >= 0; i = z.shifted.Next(i + 1) {
		z.shifted.Drop(i)
		s := z.offeredAt(i)
		fresh := s.free(now, anyRigid, z.spareGaps)
		if s.floor.Class() != s.surveyedClass || !sameTime(now, s.surveyed, fresh) {
			z.altered.Put(s.nodeAt)
		}
		s.surveyed, s.surveyedClass, z.spareGaps = fresh, s.floor.Class(), s.surveyed
	}
}

// sameTime says whether two lists of gaps, the first of an earlier instant, leave the same from now on.
func sameTime(now quantity.Instant, a, b []protocol.Gap) bool {
	for len(a) > 0 && a[0].End <= now {
		a = a[1:]
	}
	return slices.EqualFunc(a, b, func(g, h protocol.Gap) bool { return max(now, g.Start) == max(now, h.Start) && g.End == h.End })
}

// sortNodes lists the slices of every node from the smallest on, the nodes by id.
func (z *Zone) sortNodes() {
	if !z.strange {
		return
	}
	z.nodes = nodesOf(z.offeredSlices())
	for i, node := range z.nodes {
		for _, s := range node {
			s.nodeAt = i
		}
	}
}

// nodesOf lists the slices of every node in the order given, the nodes by id.
func nodesOf(list iter.Seq[*slice]) (nodes [][]*slice) {
	of := map[job.NodeID][]*slice{}
	var ids []job.NodeID
	for s := range list {
		if of[s.view.Node] == nil {
			ids = append(ids, s.view.Node)
		}
		of[s.view.Node] = append(of[s.view.Node], s)
	}
	slices.Sort(ids)
	for _, id := range ids {
		nodes = append(nodes, of[id])
	}
	return nodes
}

// join enters a new slice at its node, unless all are listed anew anyway.
func (z *Zone) join(s *slice) {
	z.joined = true
	if z.strange {
		return
	}
	node, known := slices.BinarySearchFunc(z.nodes, s.view.Node, func(n []*slice, id job.NodeID) int { return cmp.Compare(n[0].view.Node, id) })
	s.nodeAt = node
	if known {
		i, _ := slices.BinarySearchFunc(z.nodes[node], s, func(a, b *slice) int { return cmp.Compare(a.floor.At(), b.floor.At()) })
		z.nodes[node] = slices.Insert(z.nodes[node], i, s)
		return
	}
	z.nodes = slices.Insert(z.nodes, node, []*slice{s})
	for at := node + 1; at < len(z.nodes); at++ {
		for _, other := range z.nodes[at] {
			other.nodeAt = at
		}
	}
}

// alter says that a place was taken or given back.
func (z *Zone) alter(p *place) {
	if len(p.slices) > 0 {
		z.altered.Put(p.slices[0].nodeAt)
	}
}

// find finds a rigid job's place around those of the heads before it: the one it had, if all of that is still to be had
// and no other would let the job end clearly earlier, else the earliest. A place given up for one as good could be lost to
// somebody on the way, and one that follows the clock or a jitter of views would never come to rest.
func (z *Zone) find(now quantity.Instant, st *state, most int) bool {
	p, had := &st.rigid.place, len(st.rigid.place.slices) > 0
	known := st.rigid.lookedAt != 0 && st.rigid.lookedAt == z.nth-1
	st.rigid.lookedAt = z.nth
	if known && (!had || p.start >= now) && z.altered.Next(0) < 0 {
		return had
	}
	z.findFits(now, st)
	kept := had && p.start >= now && (known && !z.altered.Has(p.slices[0].nodeAt) || z.stands(st))
	var best place
	found := false
	if known && (kept || !had) {
		for n := z.altered.Next(0); n >= 0; n = z.altered.Next(n + 1) {
			best, found = z.earlier(now, st, z.nodes[n], best, found)
		}
	} else {
		for _, node := range z.nodes {
			best, found = z.earlier(now, st, node, best, found)
		}
	}
	gain := replanGain
	if most == 0 {
		gain = 1 // nothing is reserved that could be lost
	}
	if kept && (!found || p.rank().Sub(best.rank()) < gain) {
		return true
	}
	*p = best
	return found
}

// findFits finds the classes of slices that a job can run on.
func (z *Zone) findFits(now quantity.Instant, st *state) {
	v := st.view()
	z.fits = z.fits[:0]
	for _, c := range z.floor.Classes() {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(st.Spec), Start: now, End: quantity.Never})
		z.fits = append(z.fits, r.Why == atomizer.Interested)
	}
}

// stands says whether all of the place that a job had is still to be had.
func (z *Zone) stands(st *state) bool {
	p := &st.rigid.place
	p.speed = math.MaxInt64
	for _, s := range p.slices {
		r := room{gaps: z.roomFor(s, 0)}
		if !z.fits[s.floor.Class().At()] || !r.free(p.start, p.end) || st.avoids(s) {
			return false
		}
		p.speed = min(p.speed, s.speed(st.Spec))
	}
	return p.speed > 0 && endAt(st.Spec, p.start, p.speed) <= p.end
}

// earlier is the better one of best and of the earliest place on the slices of one node: the one that ends first, at the
// first instant at which enough slices are free for as long as the job takes on the slowest of them. Without speeds of its
// own it takes as long everywhere, and the earliest end is the earliest start. On a tie, the smallest slices that hold it.
func (z *Zone) earlier(now quantity.Instant, st *state, node []*slice, best place, found bool) (place, bool) {
	if len(node) < st.width() {
		return best, found
	}
	z.rooms = z.rooms[:0]
	for i, s := range node {
		if z.fits[s.floor.Class().At()] && len(s.surveyed) > 0 && !st.avoids(s) {
			z.rooms = append(z.rooms, room{s, s.speed(st.Spec), z.roomFor(s, i)})
		}
	}
	return z.better(now, st, best, found)
}

// better is the better one of best and of the earliest place in the rooms at hand.
func (z *Zone) better(now quantity.Instant, st *state, best place, found bool) (place, bool) {
	if len(z.rooms) < st.width() {
		return best, found
	}
	if p, ok := z.earliestOf(now, st.Spec, z.rooms); ok && (!found || p.before(&best)) {
		return p, true
	}
	return best, found
}

// roomFor is the slice's free time for a rigid job: all that is not booked for a head before it, since the places of those
// behind give way. It is good until the next call with the same i.
func (z *Zone) roomFor(s *slice, i int) []protocol.Gap {
	if len(s.booked) == 0 {
		return s.surveyed
	}
	for len(z.spareRooms) <= i {
		z.spareRooms = append(z.spareRooms, nil)
	}
	gaps := append(z.spareRooms[i][:0], s.surveyed...)
	for _, b := range s.booked {
		gaps = carve(gaps, b.Start, b.End, protocol.ForRigid)
	}
	z.spareRooms[i] = gaps
	return gaps
}
