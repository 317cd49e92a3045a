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

// backfill is what the zone keeps for rigid jobs. All of it is soft.
type backfill struct {
	// line are the rigid jobs that wait, in the order in which they are served, gangs those of several slices.
	line  ranking
	gangs []*state
	// replan: something has changed since the last plan, which else is good until again.
	replan bool
	again  quantity.Instant
	// plans are ForRigid reservations asked for and not seen in a view yet, withdrawals those asked to be withdrawn; both in
	// order of time.
	plans       []*plan
	withdrawals []withdrawal
	// keeping are the gangs that their queue's cap is kept for; spareKept is room for the next such list.
	keeping, spareKept []*state
	// planned is the rigid job that is planned, nil if there is none.
	planned *state
}

// plan is a ForRigid reservation that was asked for and is not in a view yet.
type plan struct {
	ask        uint64
	job        job.ID
	slice      *slice
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

// addPlan and dropPlan keep the list of plans and those of their slices.
func (z *Zone) addPlan(p *plan) {
	z.plans, p.slice.plans = append(z.plans, p), append(p.slice.plans, p)
	z.mark(p.slice)
}

func (z *Zone) dropPlan(p *plan) {
	same := func(q *plan) bool { return q == p }
	z.plans, p.slice.plans = slices.DeleteFunc(z.plans, same), slices.DeleteFunc(p.slice.plans, same)
	z.mark(p.slice)
}

// queueUp gives a rigid job its place in the line, or takes it out if it does not wait.
func (z *Zone) queueUp(s *state) {
	waits := s.alive > 0 && len(s.Claims) == 0 && s.asking == 0
	switch {
	case waits && !s.lined:
		z.line.insert(older, ranked{job: s})
	case !waits && s.lined:
		z.line.remove(older, s)
	}
	s.lined = waits
	if s.width() > 1 {
		i := slices.Index(z.gangs, s)
		switch {
		case s.alive > 0 && i < 0:
			z.gangs = append(z.gangs, s)
		case s.alive == 0 && i >= 0:
			z.gangs = slices.Delete(z.gangs, i, i+1)
		}
	}
}

// planRigid serves the head of the rigid jobs before the market opens, as EASY backfill does: it starts as soon as its
// place is free, and until then its earliest place is reserved, so that what is sold before it can not delay it. All
// other rigid jobs answer windows like everybody else. It returns when to look again: the head's own place is no window
// of the market's, so nobody else would wake the zone when it begins. As long as nothing changes, places only get worse but
// for the one that was found, so the plan stands until that begins.
func (z *Zone) planRigid(now quantity.Instant, out *protocol.Out) quantity.Instant {
	if z.stales.next() != quantity.Never {
		return quantity.Never // a fresh view is on its way; a plan made now would be moved back and forth
	}
	if z.replan || z.again <= now {
		z.replan = false
		z.again = z.plan(now, out)
	}
	return z.again
}

func (z *Zone) plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	head, place := z.head(now)
	if head != nil {
		place = z.stay(now, head, place)
	}
	z.dropPlans(now, head, place, out)
	// Where all slices are alike to the job, no window that is open could hold it before its place does.
	if head != nil && len(head.Spec.Speeds) > 0 && place.start > now {
		z.setPlanned(head)
	} else {
		z.setPlanned(nil)
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
		if s.keeps(head.Job, place) || slices.ContainsFunc(s.plans, func(p *plan) bool { return p.job == head.Job }) {
			continue
		}
		id := z.newAsk()
		z.addPlan(&plan{ask: id, job: head.Job, slice: s, start: place.start, end: place.end, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
		z.send(out, protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: head.Job, Slice: s.id,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.id, Start: place.start, End: place.end, Job: head.Job, Source: "backfill"},
		})
	}
	return place.start
}

// setPlanned says which job waits for a place that is better than any window.
func (z *Zone) setPlanned(s *state) {
	if s == z.planned {
		return
	}
	for _, of := range []*state{z.planned, s} {
		if of != nil {
			of.planned = of == s
			z.touch(of)
		}
	}
	z.planned = s
}

// stay is the place that is reserved already, if all of it still is to be had and moving would not let the head start
// clearly earlier; else the place that was found. A place given up for one as good could be lost to somebody on the way.
func (z *Zone) stay(now quantity.Instant, head *state, found place) place {
	for i := z.reserved.next(0); i >= 0; i = z.reserved.next(i + 1) {
		r := z.slices[i].reserved(head.Job)
		if r == nil || r.Start <= now {
			continue
		}
		p := place{start: r.Start, end: r.End, speed: math.MaxInt64}
		if p.rank().Sub(found.rank()) >= replanGain {
			continue
		}
		for j := z.reserved.next(0); j >= 0; j = z.reserved.next(j + 1) {
			s := z.slices[j]
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
	for _, c := range z.line.chunks {
		for _, e := range c {
			if z.waits(now, e.job) != interested {
				continue
			}
			if p, ok := z.earliest(now, e.job); ok {
				return e.job, p
			}
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
	fits := make([]bool, len(z.classes))
	for i, c := range z.classes {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.capacity, Speed: c.speed(st.Spec), Start: now, End: quantity.Never})
		fits[i] = r.Why == atomizer.Interested
	}
	for _, s := range z.slices {
		if !s.view.Usable || !fits[s.class.at] {
			continue
		}
		if nodes[s.view.Node] == nil {
			order = append(order, s.view.Node)
		}
		nodes[s.view.Node] = append(nodes[s.view.Node], room{s, s.speed(st.Spec), z.roomFor(s, now, st.Job)})
	}
	slices.Sort(order)
	for _, node := range order {
		if p, ok := earliestOf(now, st.Spec, nodes[node]); ok && (!found || p.before(&best)) {
			best, found = p, true
		}
	}
	return best, found
}

// roomFor is the slice's free time for a rigid job, whose own place counts as free.
func (z *Zone) roomFor(s *slice, now quantity.Instant, id job.ID) []protocol.Gap {
	if len(s.plans) > 0 || z.reserved.has(s.at) {
		return z.free(s, now, id, nil)
	}
	return z.room(s, now)
}

// room is a slice that a rigid job could run on, its speed there, and when it is free.
type room struct {
	s     *slice
	speed int64
	gaps  []protocol.Gap
}

// earliestOf is the earliest place on the slices of one node, given from the smallest on.
func earliestOf(now quantity.Instant, spec *job.Spec, rooms []room) (best place, found bool) {
	var starts []quantity.Instant
	var speeds []int64 // fastest first; what is slower is not looked at with a faster one
	for _, r := range rooms {
		for _, g := range r.gaps {
			if g.End > now {
				starts = append(starts, max(now, g.Start))
			}
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
	for at := z.reserved.next(0); at >= 0; at = z.reserved.next(at + 1) {
		s := z.slices[at]
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
