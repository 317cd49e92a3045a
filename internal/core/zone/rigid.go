package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// backfill is what the zone keeps for rigid jobs. All of it is soft.
type rigidQueue struct {
	// line are the rigid jobs that wait, in the order in which they are served, gangs those of several slices.
	line  ranking.List[*state]
	gangs []*state
	// unlined are the jobs of which it is to be looked at whether they belong there.
	unlined dirty.Set[*state]
	// reserved are the slices with a rigid job's place.
	reserved bitset.Set
	// replan: something has changed since the last plan, which else is good until again.
	replan bool
	again  quantity.Instant
	// ready is when the first place begins of those that were found and are not reserved.
	ready quantity.Instant
	// plans are ForRigid reservations asked for and not seen in a view yet, withdrawals those asked to be withdrawn; both in
	// order of time.
	plans       []*plan
	withdrawals []withdrawal
	// keeping are the gangs that their queue's cap is kept for; spareKept is room for the next such list.
	keeping, spareKept []*state
	// heads are the rigid jobs that are served, in order; past is room for the next such list.
	heads, past []head
	survey
}

// deepest is how many rigid jobs hold a place at most, whatever the discipline: what a step costs grows with it.
const deepest = 128

// rigid is what is kept of a rigid job.
type rigid struct {
	// head is 1 + its place among the heads, 0 if it is none; headed the same of the last plan.
	head, headed int
	outlook
	// reservedAt is when a place was last asked to be kept for it, refusedAt when an ask of it was refused.
	reservedAt, refusedAt quantity.Instant
	// lined: it is in the line of rigid jobs; unlined: whether it belongs there is to be looked at.
	lined   bool
	unlined dirty.Mark
	// planned: its place is later, and better than what the market could give it now.
	planned bool
}

// keepRigid makes room for what is kept of a rigid job.
func (s *state) keepRigid() {
	if s.Spec.Kind == job.Rigid && s.rigid == nil {
		s.rigid = &rigid{}
	}
}

// isHead says whether the job is served by the plan; r is nil for one that is not rigid.
func (r *rigid) isHead() bool { return r != nil && r.head > 0 }

// lookAnew has the next plan search everywhere for the job's place.
func (r *rigid) lookAnew() {
	if r != nil {
		r.lookedAt = 0
	}
}

// lineUp brings the line of rigid jobs up to date.
func (z *Zone) lineUp() {
	z.unlined.Drain(z.queueUp)
}

// queueUp gives a rigid job its place in the line, or takes it out if it does not wait.
func (z *Zone) queueUp(s *state) {
	waits := s.alive > 0 && len(s.Claims) == 0 && s.asking == 0
	switch {
	case waits && !s.rigid.lined:
		z.line.Insert(older, 0, s)
		s.rigid.lookedAt = 0
	case !waits && s.rigid.lined:
		z.line.Remove(older, s)
	}
	s.rigid.lined = waits
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
	if z.stales.Next() != quantity.Never {
		return quantity.Never // a fresh view is on its way; a plan made now would be moved back and forth
	}
	if z.replan || z.again <= now {
		z.replan = false
		z.again = z.plan(now, out)
	}
	return z.again
}

// plan finds the heads' places from what is sold alone, as if no place were reserved anywhere, and then does what leads
// there: first what is in the way is withdrawn, and a place is asked for only when a view says that it is not. So one plan
// is not moved by what the one before asked for, and a plan that is followed is found again.
func (z *Zone) plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z.serve(now)
	z.dropPlans(now, out)
	wake := z.ready
	for i := range z.heads {
		if h := &z.heads[i]; h.place.start <= now {
			wake = min(wake, z.start(now, h, out))
		} else {
			wake = min(wake, h.place.start, z.reserve(now, h, out))
		}
	}
	return wake
}

// serve finds the heads and their places, each around those before it. Nodes on which a place comes or goes count as
// altered for the heads behind it.
func (z *Zone) serve(now quantity.Instant) {
	z.look(now)
	before := z.heads
	for i := range before {
		h := &before[i]
		h.job.rigid.head, h.job.rigid.headed = 0, h.job.rigid.head
		for _, s := range h.place.slices {
			s.booked = s.booked[:0]
		}
		if !h.job.rigid.lined || z.waits(now, h.job) != market.Eligible {
			z.alter(&h.place)
		}
	}
	z.heads, z.ready = z.past[:0], quantity.Never
	z.findHeads(now)
	for i := range before {
		h := &before[i]
		if h.job.rigid.headed = 0; h.job.rigid.head == 0 {
			z.alter(&h.place)
			h.job.rigid.place, h.job.rigid.lookedAt = place{}, 0 // the next search is a full one: what was known is forgotten
			z.setPlanned(h.job, false)
		}
	}
	clear(before)
	z.past = before
	for i := range z.heads {
		// Where all slices are alike to the job, no window that is open could hold it before its place does.
		h := &z.heads[i]
		z.setPlanned(h.job, len(h.job.Spec.Speeds) > 0 && h.place.start > now)
	}
	for n := z.altered.Next(0); n >= 0; n = z.altered.Next(n + 1) {
		for _, s := range z.nodes[n] {
			z.reopen(s)
		}
	}
}

// findHeads takes the first rigid jobs by age that can run somewhere on what is there. Where nobody holds a reservation only
// gangs are served, which answer no windows, and those alone that can start now.
func (z *Zone) findHeads(now quantity.Instant) {
	most := min(z.cfg.Rigid.Reserve, deepest)
	if !z.cfg.Rigid.Overtake {
		most = 1
	}
	for st := range z.line.All() {
		if most == 0 && st.width() == 1 || z.waits(now, st) != market.Eligible {
			continue
		}
		old := st.rigid.place
		found := z.find(now, st, most)
		serves := found && (most > 0 || st.rigid.place.start <= now)
		moved := !found || !st.rigid.place.same(&old) || serves != (st.rigid.headed > 0)
		if moved && st.rigid.headed > 0 {
			z.alter(&old)
		}
		if !serves {
			if found {
				z.ready = min(z.ready, st.rigid.place.start)
			}
			continue
		}
		if moved {
			z.alter(&st.rigid.place)
		}
		z.heads = append(z.heads, head{st, st.rigid.place})
		st.rigid.head = len(z.heads)
		for _, s := range st.rigid.place.slices {
			s.booked = append(s.booked, protocol.Gap{Start: st.rigid.place.start, End: st.rigid.place.end})
		}
		if most > 0 && len(z.heads) == most {
			return
		}
	}
}

// setPlanned says whether a job waits for a place that is better than any window.
func (z *Zone) setPlanned(s *state, planned bool) {
	if s.rigid.planned != planned {
		s.rigid.planned = planned
		z.touch(s)
	}
}
