package zone

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
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
	// nodes are the slices of every node, strange says that they may have changed; the rest is room for what is looked at.
	nodes   [][]*slice
	strange bool
	rooms   []room
	fits    []bool
	starts  []quantity.Instant
	speeds  []int64
	// heads are the rigid jobs that are served, in order; past is room for the next such list.
	heads, past []head
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

// head is a rigid job that is served, with its place.
type head struct {
	job   *state
	place place
}

// planRigid serves the heads of the rigid jobs before the market opens, as EASY backfill does with one and conservative
// backfill with all of them: a head starts as soon as its place is free, and until then its earliest place is reserved, so
// that what is sold before it can not delay it. All other rigid jobs answer windows like everybody else, if they may. It
// returns when to look again: a head's own place is no window of the market's, so nobody else would wake the zone when it
// begins. As long as nothing changes, places only get worse but for those that were found, so the plan stands until the
// first of them begins.
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
	z.serve(now)
	z.dropPlans(now, out)
	wake := quantity.Never
	for i := range z.heads {
		if h := &z.heads[i]; h.place.start <= now {
			z.start(now, h, out)
		} else {
			z.reserve(now, h, out)
			wake = min(wake, h.place.start)
		}
	}
	return wake
}

// serve finds the heads and their places, each around those before it.
func (z *Zone) serve(now quantity.Instant) {
	for i := range z.heads {
		h := &z.heads[i]
		h.job.head = 0
		for _, s := range h.place.slices {
			s.booked = s.booked[:0]
		}
	}
	before := z.heads
	z.heads, z.past = z.past[:0], before
	z.findHeads(now)
	for i := range before {
		if s := before[i].job; s.head == 0 {
			z.setPlanned(s, false)
		}
	}
	for i := range z.heads {
		// Where all slices are alike to the job, no window that is open could hold it before its place does.
		h := &z.heads[i]
		z.setPlanned(h.job, len(h.job.Spec.Speeds) > 0 && h.place.start > now)
	}
}

// findHeads takes the first rigid jobs by age that can run somewhere on what is there. Where nobody holds a reservation only
// gangs are served, which answer no windows, and those alone that can start now.
func (z *Zone) findHeads(now quantity.Instant) {
	most := z.cfg.Rigid.Reserve
	if !z.cfg.Rigid.Overtake {
		most = 1
	}
	for _, c := range z.line.chunks {
		for _, e := range c {
			if z.waits(now, e.job) != interested || most == 0 && e.job.width() == 1 {
				continue
			}
			p, ok := z.earliest(now, e.job)
			if !ok || most == 0 && p.start > now {
				continue
			}
			if most > 0 {
				p = z.stay(now, e.job, p)
			}
			z.heads = append(z.heads, head{e.job, p})
			e.job.head = len(z.heads)
			for _, s := range p.slices {
				s.booked = append(s.booked, protocol.Gap{Start: p.start, End: p.end})
			}
			if most > 0 && len(z.heads) == most {
				return
			}
		}
	}
}

// setPlanned says whether a job waits for a place that is better than any window.
func (z *Zone) setPlanned(s *state, planned bool) {
	if s.planned != planned {
		s.planned = planned
		z.touch(s)
	}
}

// start asks the node of a head's place to start it.
func (z *Zone) start(now quantity.Instant, h *head, out *protocol.Out) {
	if z.waits(now, h.job) != interested {
		return // a head before it took what its queue may hold
	}
	p, _ := atomizer.Fit(ptr(h.job.view()), atomizer.Window{Capacity: h.place.slices[0].view.Slice.Capacity, Speed: h.place.speed, Start: h.place.start, End: h.place.end})
	var also []job.SliceID
	for _, s := range h.place.slices[1:] {
		also = append(also, s.id)
	}
	// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
	held := uint64(0)
	for _, s := range h.place.slices {
		if r := s.reserved(h.job.Job); r != nil {
			held = r.ID
		}
	}
	z.ask(now, h.job, h.place.slices[0], also, piece{Piece: p, start: now, end: h.place.end, speed: h.place.speed}, held, out)
}

// reserve asks the node for a head's place, as far as that is not reserved yet.
func (z *Zone) reserve(now quantity.Instant, h *head, out *protocol.Out) {
	for _, s := range h.place.slices {
		if s.keeps(h.job.Job, h.place) || slices.ContainsFunc(s.plans, func(p *plan) bool { return p.job == h.job.Job }) {
			continue
		}
		id := z.newAsk()
		z.addPlan(&plan{ask: id, job: h.job.Job, slice: s, start: h.place.start, end: h.place.end, expires: now.Add(z.cfg.AskTTL), version: s.view.Version})
		z.send(out, protocol.Message{
			Kind: protocol.Reserve, To: protocol.Address{Role: protocol.Node, ID: string(s.view.Node)}, Ask: id, Job: h.job.Job, Slice: s.id,
			Reservation: &protocol.Reservation{Kind: protocol.ForRigid, Slice: s.id, Start: h.place.start, End: h.place.end, Job: h.job.Job, Source: "backfill"},
		})
	}
}

// stay is the place that is reserved already, if all of it still is to be had and moving would not let the head start
// clearly earlier; else the place that was found. A place given up for one as good could be lost to somebody on the way.
func (z *Zone) stay(now quantity.Instant, st *state, found place) place {
	for i := z.reserved.next(0); i >= 0; i = z.reserved.next(i + 1) {
		r := z.slices[i].reserved(st.Job)
		if r == nil || r.Start <= now {
			continue
		}
		p := place{start: r.Start, end: r.End, speed: math.MaxInt64}
		if p.rank().Sub(found.rank()) >= replanGain {
			continue
		}
		for j := z.reserved.next(0); j >= 0; j = z.reserved.next(j + 1) {
			s := z.slices[j]
			if s.keeps(st.Job, p) && slices.ContainsFunc(z.roomFor(s, now, st.Job), func(g protocol.Gap) bool { return g.Start <= p.start && p.end <= g.End }) {
				p.slices, p.speed = append(p.slices, s), min(p.speed, s.speed(st.Spec))
			}
		}
		if len(p.slices) == len(found.slices) && endAt(st.Spec, p.start, p.speed) <= p.end {
			return p
		}
	}
	return found
}

// dropPlans withdraws reservations that no longer serve a head: those of other jobs, and its own that do not hold its
// place.
func (z *Zone) dropPlans(now quantity.Instant, out *protocol.Out) {
	for at := z.reserved.next(0); at >= 0; at = z.reserved.next(at + 1) {
		s := z.slices[at]
		for i := range s.view.Reserved {
			r := &s.view.Reserved[i]
			if r.Kind != protocol.ForRigid || r.End <= now {
				continue
			}
			if st := z.jobs[r.Job]; st != nil && (st.asking > 0 || st.head > 0 && z.heads[st.head-1].place.uses(now, s, r)) {
				continue // it is being turned into a lease right now, or good
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

// uses says whether a reservation on a slice serves the place.
func (p *place) uses(now quantity.Instant, s *slice, r *protocol.Reservation) bool {
	return slices.Contains(p.slices, s) && (p.start <= now || p.holds(r))
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
