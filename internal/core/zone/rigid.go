package zone

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// plan is a ForRigid reservation that was asked for and is not in a view yet.
type plan struct {
	ask        uint64
	job        job.ID
	slice      job.SliceID
	start, end quantity.Instant
	expires    quantity.Instant
	// version of the slice's view that it was decided on.
	version uint64
}

// withdrawal is a reservation whose node was asked to withdraw it.
type withdrawal struct {
	id    uint64
	slice *slice
	again quantity.Instant
}

// replanGain is how much earlier a head must be able to start before its reservation is moved.
const replanGain = time.Second

// planRigid serves the head of the rigid jobs before the market opens, as EASY backfill does: it starts as soon as its
// place is free, and until then its earliest place is reserved, so that what is sold before it can not delay it. All
// other rigid jobs answer windows like everybody else. It returns when to look again: the head's own place is no window
// of the market's, so nobody else would wake the zone when it begins.
func (z *Zone) planRigid(now quantity.Instant, out *protocol.Out) quantity.Instant {
	if slices.ContainsFunc(z.slices, func(s *slice) bool { return s.stale > now }) {
		return quantity.Never // a fresh view is on its way; a plan made now would be moved back and forth
	}
	head, place := z.head(now)
	if head != nil {
		place = z.stay(now, head, place)
	}
	z.dropPlans(now, head, place, out)
	if z.planned != nil {
		z.planned.planned, z.planned = false, nil
	}
	// Where all slices are alike to the job, no window that is open could hold it before its place does.
	if head != nil && len(head.Spec.Speeds) > 0 && place.start > now {
		head.planned, z.planned = true, head
	}
	if head == nil {
		return quantity.Never
	}
	p, _ := atomizer.Fit(ptr(head.view()), atomizer.Window{Capacity: place.slices[0].view.Slice.Capacity, Speed: place.speed, Start: place.start, End: place.end})
	if place.start <= now {
		var also []job.SliceID
		for _, s := range place.slices[1:] {
			also = append(also, s.id)
		}
		// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
		held := uint64(0)
		for _, s := range place.slices {
			if r := s.reserved(head.Job); r != nil {
				held = r.ID
			}
		}
		z.ask(now, head, place.slices[0], also, piece{Piece: p, start: now, end: place.end, speed: place.speed}, held, out)
		return quantity.Never
	}
	for _, s := range place.slices {
		if s.keeps(head.Job, place) || slices.ContainsFunc(z.plans, func(p plan) bool { return p.job == head.Job && p.slice == s.id }) {
			continue
		}
		id := z.newAsk()
		z.plans = append(z.plans, plan{ask: id, job: head.Job, slice: s.id, start: place.start, end: place.end, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
		z.send(out, protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: head.Job, Slice: s.id,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.id, Start: place.start, End: place.end, Job: head.Job, Source: "backfill"},
		})
	}
	return place.start
}

// stay is the place that is reserved already, if all of it still is to be had and moving would not let the head start
// clearly earlier; else the place that was found. A place given up for one as good could be lost to somebody on the way.
func (z *Zone) stay(now quantity.Instant, head *state, found place) place {
	for _, s := range z.slices {
		r := s.reserved(head.Job)
		if r == nil || r.Start <= now {
			continue
		}
		p := place{start: r.Start, end: r.End, speed: math.MaxInt64}
		if p.rank().Sub(found.rank()) >= replanGain {
			continue
		}
		for _, s := range z.slices {
			if s.keeps(head.Job, p) && slices.ContainsFunc(z.free(s, now, head.Job, nil), func(g protocol.Gap) bool { return g.Start <= p.start && p.end <= g.End }) {
				p.slices, p.speed = append(p.slices, s), min(p.speed, s.speed(head.Spec))
			}
		}
		if len(p.slices) == len(found.slices) && endAt(head.Spec, p.start, p.speed) <= p.end {
			return p
		}
	}
	return found
}

// place is where and when a rigid job could run, and how fast: as the slowest of its slices.
type place struct {
	slices     []*slice
	start, end quantity.Instant
	speed      int64
}

// head is the first rigid job by age that can run somewhere on what is there, with its earliest place.
func (z *Zone) head(now quantity.Instant) (*state, place) {
	var waiting []*state
	for _, s := range z.rigid {
		if len(s.Claims) == 0 && s.asking == 0 && z.waits(now, s) == interested {
			waiting = append(waiting, s)
		}
	}
	slices.SortFunc(waiting, older)
	for _, s := range waiting {
		if p, ok := z.earliest(now, s); ok {
			return s, p
		}
	}
	return nil, place{}
}

// earliest finds the place with the earliest end: the first instant at which enough slices of one node are free for as
// long as the job takes on the slowest of them. Without speeds of its own it takes as long everywhere, and the earliest end
// is the earliest start. On a tie, the smallest slices that hold it.
func (z *Zone) earliest(now quantity.Instant, st *state) (best place, found bool) {
	v := st.view()
	nodes := map[job.NodeID][]room{}
	var order []job.NodeID
	for _, s := range z.slices {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: s.view.Slice.Capacity, Speed: s.speed(st.Spec), Start: now, End: quantity.Never})
		if !s.view.Usable || r.Why != atomizer.Interested {
			continue
		}
		if nodes[s.view.Node] == nil {
			order = append(order, s.view.Node)
		}
		nodes[s.view.Node] = append(nodes[s.view.Node], room{s, s.speed(st.Spec), z.free(s, now, st.Job, nil)})
	}
	slices.Sort(order)
	for _, node := range order {
		if p, ok := earliestOf(st.Spec, nodes[node]); ok && (!found || p.before(&best)) {
			best, found = p, true
		}
	}
	return best, found
}

// room is a slice that a rigid job could run on, its speed there, and when it is free.
type room struct {
	s     *slice
	speed int64
	gaps  []protocol.Gap
}

// earliestOf is the earliest place on the slices of one node, given from the smallest on.
func earliestOf(spec *job.Spec, rooms []room) (best place, found bool) {
	var starts []quantity.Instant
	var speeds []int64 // fastest first; what is slower is not looked at with a faster one
	for _, r := range rooms {
		for _, g := range r.gaps {
			starts = append(starts, g.Start)
		}
		speeds = append(speeds, r.speed)
	}
	slices.Sort(starts)
	slices.SortFunc(speeds, func(a, b int64) int { return cmp.Compare(b, a) })
	if speeds = slices.Compact(speeds); len(spec.Speeds) == 0 {
		speeds = speeds[len(speeds)-1:] // as long on all of them
	}
	for _, t := range slices.Compact(starts) {
		if earliest := (place{start: t, end: endAt(spec, t, speeds[0])}); found && best.rank() < earliest.rank() {
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

// placeAt is the place that begins at t on the smallest slices of at least this speed, as far as there are enough.
func placeAt(spec *job.Spec, rooms []room, t quantity.Instant, least int64) (place, bool) {
	p := place{start: t, end: endAt(spec, t, least), speed: math.MaxInt64}
	for _, r := range rooms {
		if r.speed >= least && slices.ContainsFunc(r.gaps, func(g protocol.Gap) bool { return g.Start <= t && p.end <= g.End }) {
			p.slices, p.speed = append(p.slices, r.s), min(p.speed, r.speed)
		}
		if len(p.slices) == max(1, spec.Slices) {
			p.end = endAt(spec, t, p.speed)
			return p, true
		}
	}
	return place{}, false
}

// endAt is when a rigid job ends, grace included, that starts at t and runs at this speed.
func endAt(spec *job.Spec, t quantity.Instant, speed int64) quantity.Instant {
	if spec.Walltime == 0 {
		return quantity.Never
	}
	return t.Add(spec.WalltimeAt(speed) + spec.Launch.Grace)
}

// rank is what makes a place better than another: its end, or its start where no end is known.
func (p *place) rank() quantity.Instant {
	if p.end == quantity.Never {
		return p.start
	}
	return p.end
}

// before orders places: the earlier first, then the one on smaller slices, then the one that starts earlier.
func (p *place) before(q *place) bool {
	largest := func(p *place) quantity.Amount { return p.slices[len(p.slices)-1].view.Slice.Capacity[trp.Memory] }
	return cmp.Or(cmp.Compare(p.rank(), q.rank()), cmp.Compare(largest(p), largest(q)), cmp.Compare(p.start, q.start)) < 0
}

// dropPlans withdraws reservations that no longer serve the head: those of other jobs, and its own that do not hold its
// place.
func (z *Zone) dropPlans(now quantity.Instant, head *state, p place, out *protocol.Out) {
	for _, s := range z.slices {
		for i := range s.view.Reserved {
			r := &s.view.Reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now || head != nil && r.Job == head.Job && slices.Contains(p.slices, s) && (p.start <= now || p.holds(r)) {
				continue
			}
			if st := z.jobs[r.Job]; st != nil && st.asking > 0 {
				continue // it is being turned into a lease right now
			}
			if slices.ContainsFunc(z.withdrawals, func(w withdrawal) bool { return w.id == r.ID && w.slice == s }) {
				continue // asked for and not in a view yet
			}
			z.withdrawals = append(z.withdrawals, withdrawal{id: r.ID, slice: s, again: now.Add(z.cfg.Retry)})
			z.send(out, protocol.Message{
				Kind: protocol.Unreserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Job: r.Job, Reservation: &protocol.Reservation{ID: r.ID},
			})
		}
	}
}

// holds says whether a reservation keeps the whole of a place. One that ends before the place does would let the time
// behind it be sold to others.
func (p *place) holds(r *protocol.Reservation) bool {
	return r.Start <= p.start && p.end <= r.End
}

// keeps says whether the slice has a reservation that keeps the job's place.
func (s *slice) keeps(id job.ID, p place) bool {
	return slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool {
		return r.Kind == protocol.ForRigid && r.Job == id && p.holds(&r)
	})
}

// reserved is the slice's reservation for a rigid job, nil if there is none.
func (s *slice) reserved(id job.ID) *protocol.Reservation {
	for i := range s.view.Reserved {
		if r := &s.view.Reserved[i]; r.Kind == protocol.ForRigid && r.Job == id {
			return r
		}
	}
	return nil
}

func ptr[T any](v T) *T { return &v }
