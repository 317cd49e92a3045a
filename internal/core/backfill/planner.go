package backfill

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Config of a planner.
type Config struct {
	Discipline
	// Retry is after how long a job's placement is asked for again, AskTTL how long what is asked for may stay unanswered.
	Retry, AskTTL time.Duration
	// Late is how many gangs that are late may hold a place at once, where nobody does by age.
	Late int
	// ByAge: gangs are in line by age whatever the policy, since other jobs are not in its order (tickets that search for places).
	ByAge bool
}

// Planner keeps placements for rigid jobs that no window holds, or that are first in line. It is a part of an actor, deterministic and
// not safe for concurrent use. All that it keeps is soft.
type Planner struct {
	cfg   Config
	floor *market.Floor
	sale  Sale
	// line are the rigid jobs that wait, in the order in which they are served, gangs those of several slices.
	line  ranking.List[*Job]
	gangs []*Job
	// requeue are the jobs that may have to enter or leave the line.
	requeue dirty.Set[*Job]
	// replan: something has changed since the last pass, whose result else is valid until validUntil.
	replan     bool
	validUntil quantity.Instant
	// nextStart is when the first placement begins of those that were found and are not reserved.
	nextStart quantity.Instant
	// nonePlaceable: the pass nonePlaceableAt searched for the whole line, everybody was eligible, and there was a placement for nobody,
	// as in every pass since. newcomers have entered the line or changed since.
	nonePlaceable   bool
	nonePlaceableAt uint64
	newcomers       []*Job
	// reserved jobs are served, in order; before are those of the last pass, whose room the next one takes. The places of the first
	// lookedBack among before are accounted for in this pass: served again, or their nodes are dirty.
	reserved, before []reservation
	lookedBack       int
	survey           survey
	order            order
	late             late
	bookings         bookings
}

// New makes a planner over the slices of a floor.
func New(cfg Config, floor *market.Floor, sale Sale) *Planner {
	byIndex := cfg.Gangs && floor.Estimator().HasIndex() && !cfg.ByAge
	pl := &Planner{cfg: cfg, floor: floor, sale: sale, survey: survey{floor: floor}, order: newOrder(byIndex, floor)}
	pl.late = late{floor: floor, spares: (cfg.Reserve == 0 || byIndex) && cfg.Overtake && cfg.Late > 0, most: cfg.Late}
	pl.bookings = bookings{sale: sale, survey: &pl.survey, retry: cfg.Retry, ttl: cfg.AskTTL}
	return pl
}

// Invalidate has the next step plan anew.
func (pl *Planner) Invalidate() { pl.replan = true }

// Invalid reports whether the next step plans anew.
func (pl *Planner) Invalid() bool { return pl.replan }

// InvalidateJob notes that a rigid job has changed.
func (pl *Planner) InvalidateJob(j *Job) {
	pl.replan = true
	pl.requeue.Add(&j.queuedStale, j)
}

// InvalidateSlice notes that a slice's free time has changed.
func (pl *Planner) InvalidateSlice(s *Slice) {
	pl.replan = true
	pl.survey.dirtySlices.Put(s.At())
}

// UpdateLine brings the line of rigid jobs up to date. Those that enter it are sorted into it together.
func (pl *Planner) UpdateLine() {
	pl.order.reindex(&pl.line)
	if pl.requeue.Len() > 0 {
		pl.requeue.Drain(pl.updateQueued)
		pl.line.Settle(pl.order.inLine)
	}
}

// Gangs are the jobs of several slices, in no order.
func (pl *Planner) Gangs() []*Job { return pl.gangs }

// Reserved is how many jobs hold a place.
func (pl *Planner) Reserved() int { return len(pl.reserved) }

// Anew makes the next pass search exhaustively, with the line rebuilt from these jobs and nothing cached. For tests, which compare
// decisions with it.
func (pl *Planner) Anew(jobs []*Job) {
	for j := range pl.line.All() {
		j.queued = false // also of those that are over, and are none of these jobs
	}
	pl.line, pl.gangs, pl.nonePlaceable = ranking.List[*Job]{}, nil, false
	for j := range pl.late.lateGangs.All() {
		j.isLate = false
	}
	for _, j := range pl.late.lateAlarms.All() {
		j.dueSlot = 0
	}
	pl.late.lateGangs, pl.late.lateAlarms = ranking.List[*Job]{}, alarm.Heap[*Job]{}
	pl.requeue.Clear()
	for _, j := range jobs {
		pl.updateQueued(j)
	}
	pl.line.Settle(pl.order.inLine)
	for _, s := range pl.survey.slices {
		s.pending = nil
	}
	for _, p := range pl.bookings.pending {
		p.slice.pending = append(p.slice.pending, p)
	}
	pl.replan, pl.survey.nodesStale, pl.survey.exhaustive = true, true, true
}

// deepest bounds how many rigid jobs hold a placement, whatever the discipline: the cost of a step grows with it.
const deepest = 128

// updateQueued enters a rigid job in the line if it waits, and takes it out if it does not.
func (pl *Planner) updateQueued(j *Job) {
	waits := j.Waiting() && (pl.cfg.Lines(j.width()) || j.Guest != nil)
	switch {
	case waits && !j.queued:
		j.index = pl.order.indexOf(j)
		pl.line.Gather(pl.order.inLine, 0, j)
		j.searchedIn = 0
	case !waits && j.queued:
		pl.line.Remove(pl.order.inLine, j)
	}
	if j.queued = waits; !j.Active() {
		j.place, j.searchedIn = Placement{}, 0 // whose slices may be there no more
	}
	pl.late.schedule(j)
	if waits && pl.nonePlaceable {
		pl.newcomers = append(pl.newcomers, j)
	}
	if j.wide() {
		i := slices.Index(pl.gangs, j)
		switch active := j.Active(); {
		case active && i < 0:
			pl.gangs = append(pl.gangs, j)
		case !active && i >= 0:
			pl.gangs = slices.Delete(pl.gangs, i, i+1)
		}
	}
}

// Plan serves the reserved jobs before the market opens, as EASY backfill does with one and conservative backfill with all of them: one
// starts as soon as its placement is free, and until then its earliest one is reserved, so that what is sold before it can not
// delay it. All other rigid jobs answer windows like everybody else, if they may. It returns when to look again: a reserved placement
// is no window of the market's, so nobody else would wake the zone when it begins. As long as nothing changes, placements only get
// worse but for those that were found, so the plan stands until the first of them begins.
func (pl *Planner) Plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	pl.replan = pl.late.promote(now, pl.replan)
	pl.replan = pl.replan || pl.order.prevails(now)
	if pl.replan || pl.validUntil <= now {
		if pl.replan, pl.validUntil = false, quantity.Never; !pl.idle() {
			pl.validUntil = pl.plan(now, out)
		}
	}
	return min(pl.validUntil, pl.late.lateAlarms.Next(), pl.late.creditAt(now))
}

// idle reports whether nobody waits and nothing is reserved. Dirty slices then wait until somebody comes.
func (pl *Planner) idle() bool {
	return pl.line.Empty() && len(pl.reserved) == 0 && len(pl.late.holders) == 0 && pl.bookings.holding.Next(0) < 0
}

// plan finds the placements of reserved jobs from what is sold alone, as if no place were reserved anywhere, and then does what leads
// there: first what is in the way is withdrawn, and a place is asked for only when a view says that it is not. So one plan
// is not moved by what the one before asked for, and a plan that is followed is found again.
func (pl *Planner) plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	pl.placeReserved(now)
	pl.bookings.withdraw(now, pl.reserved, out)
	wake := pl.nextStart
	for i := range pl.reserved {
		if h := &pl.reserved[i]; h.job.Guest != nil {
			wake = min(wake, pl.bookings.reserve(now, h, out)) // its home starts it
		} else if h.place.Start <= now {
			wake = min(wake, pl.start(now, h, out))
		} else {
			wake = min(wake, h.place.Start, pl.bookings.reserve(now, h, out))
		}
	}
	return wake
}

// placeReserved finds the reserved jobs and their placements, each around those ahead of it. Nodes on which a placement comes or goes are
// dirty for the reserved jobs behind it.
func (pl *Planner) placeReserved(now quantity.Instant) {
	pl.survey.resurvey(now)
	pl.reserved, pl.before, pl.lookedBack = pl.before[:0], pl.reserved, 0
	for i := range pl.before {
		h := &pl.before[i]
		h.job.rank, h.job.rankBefore = 0, h.job.rank
		for _, s := range h.place.Slices {
			s.placed = s.placed[:0]
		}
		if !h.job.queued || h.job.Waits(now) != explain.Eligible {
			pl.survey.markDirty(&h.place)
		}
	}
	pl.nextStart = quantity.Never
	pl.findReserved(now)
	for i := range pl.before {
		h := &pl.before[i]
		if h.job.rankBefore = 0; h.job.rank == 0 {
			pl.survey.markDirty(&h.place)
			h.job.place, h.job.searchedIn = Placement{}, 0 // the next search is a full one: what was known is forgotten
			pl.setPlanned(h.job, false)
		}
	}
	clear(pl.before)
	for i := range pl.reserved {
		// If all slices are equal for the job, no open window could hold it before its placement does.
		h := &pl.reserved[i]
		pl.setPlanned(h.job, len(h.job.Spec().Speeds) > 0 && h.place.Start > now)
	}
	for n := pl.survey.dirtyNodes.Next(0); n >= 0; n = pl.survey.dirtyNodes.Next(n + 1) {
		for _, s := range pl.survey.nodes[n].slices {
			pl.sale.Reopen(s)
		}
	}
}

// findReserved takes the first rigid jobs in line that can run somewhere on what is there. Where nobody holds a reservation only
// gangs are served, which answer no windows, and those alone that can start now.
func (pl *Planner) findReserved(now quantity.Instant) {
	most := min(pl.cfg.Reserve, deepest)
	if !pl.cfg.Overtake {
		most = 1
	}
	pl.endHolds(now)
	if pl.stillNonePlaceable(now, most) {
		return
	}
	clear(pl.newcomers)
	none := most > 0
	pl.nonePlaceable, pl.newcomers = false, pl.newcomers[:0]
	pl.serveLate(now)
	if pl.order.byIndex {
		pl.serveInOrder(now)
		return
	}
	for j := range pl.line.All() {
		if most == 0 && !j.wide() || j.isLate || j.Waits(now) != explain.Eligible {
			none = false
			continue
		}
		found := pl.consider(now, j, most, func() bool { return most > 0 || j.place.Start <= now })
		none = none && !found
		if most > 0 && len(pl.reserved) == most {
			return
		}
	}
	pl.nonePlaceable, pl.nonePlaceableAt = none, pl.survey.generation
}

// consider finds a job's placement, around those of the reserved jobs before it, and makes the job one of them if it is to be served
// there. It says whether there is one.
func (pl *Planner) consider(now quantity.Instant, j *Job, most int, serve func() bool) (found bool) {
	old := j.place
	found = pl.findPlacement(now, j, most)
	serves := found && serve()
	moved := !found || !j.place.same(&old) || serves != (j.rankBefore > 0)
	if moved && j.rankBefore > 0 {
		pl.survey.markDirty(&old)
	}
	if !serves {
		switch {
		case !found:
		case j.place.Start > now:
			pl.nextStart = min(pl.nextStart, j.place.Start)
		default: // it is free, for somebody else
			pl.nextStart = min(pl.nextStart, now.Add(pl.cfg.Retry))
		}
		return found
	}
	if moved {
		pl.survey.markDirty(&j.place)
	}
	pl.reserved = append(pl.reserved, reservation{j, j.place})
	j.rank = len(pl.reserved)
	for _, s := range j.place.Slices {
		s.placed = append(s.placed, protocol.Gap{Start: j.place.Start, End: j.place.End})
	}
	return true
}

// stillNonePlaceable reports whether nobody can be placed, as in the last plan: no slice's time has changed since, and jobs that have come
// or changed find no placement either. So a long line that waits for drained slices is not searched again for every job that joins it. The
// plan then counts as the one before, which searched for the others.
func (pl *Planner) stillNonePlaceable(now quantity.Instant, most int) bool {
	if !pl.nonePlaceable || pl.survey.dirtyNodes.Next(0) >= 0 || pl.survey.generation != pl.nonePlaceableAt+1 {
		return false
	}
	if slices.ContainsFunc(pl.late.holders, func(j *Job) bool { return j.queued }) {
		return false // it was being asked for, and waits again: without a place its hold ends (serveLate)
	}
	pl.survey.generation--
	for _, j := range pl.newcomers {
		if j.queued && (j.Waits(now) != explain.Eligible || pl.findPlacement(now, j, most)) {
			pl.survey.generation++
			return false
		}
	}
	clear(pl.newcomers)
	pl.newcomers = pl.newcomers[:0]
	return true
}

// setPlanned says whether a job waits for a place that is better than any window.
func (pl *Planner) setPlanned(j *Job, planned bool) {
	if j.planned != planned {
		j.planned = planned
		pl.sale.Planned(j)
	}
}

// findPlacement searches for a rigid job's placement around those of the reserved jobs ahead of it. It keeps the job's present one while
// that is available and no other would let the job end earlier by replanGain: a placement given up for an equal one could be lost to
// another job meanwhile, and one that follows the clock or the jitter of views would never settle. For the same reason a placement on
// slices in doubt is kept until it is to begin: by then the node has probably reported.
func (pl *Planner) findPlacement(now quantity.Instant, j *Job, most int) bool {
	p, had := &j.place, len(j.place.Slices) > 0
	// a guest's start moves, and so do those ahead of it
	known := j.searchedIn != 0 && j.searchedIn == pl.survey.generation-1 && j.Guest == nil
	if known {
		pl.giveBackAhead(j)
	}
	j.searchedIn, j.ahead = pl.survey.generation, len(pl.reserved)
	if j.taking() {
		return true
	}
	from := j.from(now)
	holds := had && j.holds(now) && (p.Start > now || !p.inDoubt(now))
	if known && (!had || holds) && pl.survey.dirtyNodes.Next(0) < 0 {
		return had
	}
	pl.survey.findFits(now, j)
	kept := holds && (known && !pl.survey.onDirtyNode(p) || pl.survey.stillAvailable(now, j))
	var best Placement
	found := false
	switch {
	case j.Guest != nil:
		best, found = pl.survey.lend(from, j)
	case j.spreads():
		best, found = pl.survey.closest(now, j)
	case known && (kept || !had):
		for n := pl.survey.dirtyNodes.Next(0); n >= 0; n = pl.survey.dirtyNodes.Next(n + 1) {
			best, found = pl.survey.improveOnNode(now, j, pl.survey.nodes[n], best, found)
		}
	default:
		best, found = pl.survey.earliest(now, j)
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

// giveBackAhead marks the nodes of the reserved jobs that were ahead of a job when it was searched for last, and are not ahead of it now:
// a gang that has become late is served before those whose slices are worth more with them.
func (pl *Planner) giveBackAhead(j *Job) {
	for ; pl.lookedBack < j.ahead; pl.lookedBack++ {
		if h := &pl.before[pl.lookedBack]; h.job.rank == 0 {
			pl.survey.markDirty(&h.place)
		}
	}
}

// endHolds ends the holds of late gangs that start, or wait no more. What they get back depends on whether they run, so this may wait for
// no search.
func (pl *Planner) endHolds(now quantity.Instant) {
	pl.late.holders = slices.DeleteFunc(pl.late.holders, func(j *Job) bool {
		if j.queued && j.Waits(now) == explain.Eligible || !j.queued && j.Active() && j.Asking() {
			return false
		}
		pl.late.endHold(now, j, !j.queued && j.Active())
		return true
	})
}

// serveLate serves the late gangs in turn: those that hold a place keep it, and the next is given one if there is credit, as far as there
// may be more.
func (pl *Planner) serveLate(now quantity.Instant) {
	if !pl.late.spares {
		return
	}
	pl.late.creditWaiter, pl.late.firstTurn = lateness.Nobody(), lateness.Nobody()
	if !pl.late.lateGangs.Empty() {
		pl.late.firstTurn = pl.floor.Late().First(now)
	}
	for j := range pl.late.lateGangs.All() {
		if slices.Contains(pl.order.worthy, j) || j.Waits(now) != explain.Eligible {
			continue
		}
		most := 0
		if j.paid != 0 {
			most = pl.cfg.Late
		}
		found := pl.consider(now, j, most, func() bool {
			return j.paid != 0 || j.place.Start <= now && !pl.order.byIndex || pl.late.mayHold(now, j)
		})
		if !found && j.paid != 0 {
			pl.late.endHold(now, j, false)
			pl.late.holders = slices.DeleteFunc(pl.late.holders, func(o *Job) bool { return o == j })
		}
	}
	pl.floor.Late().Heed(pl.late.creditWaiter)
}

// serveInOrder serves the gangs that are first in order: those that keep a place, and those whose slices are worth most with them, who keep
// it from now on. While a late job could be placed, no other job is.
func (pl *Planner) serveInOrder(now quantity.Instant) {
	before := pl.order.worthy
	pl.order.worthy = pl.order.spareWorthy[:0]
	pl.nonePlaceable, pl.nonePlaceableAt = pl.placeInOrder(now, before), pl.survey.generation
	if slices.ContainsFunc(before, func(j *Job) bool { return j.rank == 0 && j.isLate }) {
		pl.replan = true // it was passed over among the late, since it kept a place
	}
	clear(before)
	pl.order.spareWorthy = before
}

// placeInOrder does so, given who kept a place before. It says whether there was a placement for nobody, though everybody may be served.
func (pl *Planner) placeInOrder(now quantity.Instant, before []*Job) (none bool) {
	none, pl.order.outweighed = true, nil
	for j := range pl.line.All() {
		if j.rank > 0 || j.Waits(now) != explain.Eligible {
			none = false // it is late and served, or not to be served
			continue
		}
		held := slices.Contains(before, j)
		found := pl.consider(now, j, mostHolders, func() bool {
			return held || pl.order.outweighs(now, j, &j.place, surveyed) && !pl.floor.Late().Waits(now)
		})
		if j.rank > 0 {
			pl.order.worthy = append(pl.order.worthy, j)
		}
		if found && j.rank == 0 {
			pl.order.outweighed = j
			return false
		}
		if len(pl.order.worthy) == mostHolders {
			return false
		}
		none = none && !found
	}
	return none
}

// start asks the node of a reserved job's placement to start it, or returns when to look again. What was refused is not asked again at
// once: the node would be asked for ever about what only it knows.
func (pl *Planner) start(now quantity.Instant, h *reservation, out *protocol.Out) quantity.Instant {
	if h.job.Waits(now) != explain.Eligible { // one before it took what its queue may hold
		for _, s := range h.place.Slices {
			s.placed = slices.DeleteFunc(s.placed, func(g protocol.Gap) bool { return g.Start == h.place.Start })
			pl.sale.Reopen(s)
		}
		h.job.rank = 0
		return quantity.Never
	}
	if again := h.job.refusedAt.Add(pl.cfg.Retry); h.job.refusedAt != 0 && now < again {
		pl.replan = true // its place moves with the clock
		return again
	}
	if slices.ContainsFunc(h.place.Slices, func(s *Slice) bool { return s.clearAt(now, h) > now }) {
		pl.replan = true // and the view in which it is clear is on its way
		return quantity.Never
	}
	v := h.job.View()
	p, r := atomizer.Fit(&v, atomizer.Window{Capacity: h.place.smallest().Class().Capacity, Speed: h.place.Speed, Start: h.place.Start,
		End: h.place.End})
	if r.Why != atomizer.Interested { // place and piece are not of one mind: what is asked for is never empty
		h.job.CountRefusal(r, now)
		h.job.refusedAt, h.job.searchedIn = now, 0
		pl.replan = true
		return now.Add(pl.cfg.Retry)
	}
	// One id is enough for the node: it says that the job comes for its own places, on whichever slices they are.
	held := uint64(0)
	for _, s := range h.place.Slices {
		if r := s.For(h.job.Name()); r != nil {
			held = r.ID
		}
	}
	pl.late.charge(h)
	pl.sale.Start(now, h.job, h.place.Slices, award.Piece{Piece: p, Start: now, End: h.place.End, Speed: h.place.Speed}, held, out)
	return quantity.Never
}

// Seen records a node's report on a slice.
func (pl *Planner) Seen(s *Slice) { pl.replan = pl.bookings.seen(s) || pl.replan }

// Holds says whether the planner knows a slice as one with a rigid job's reservation.
func (pl *Planner) Holds(s *Slice) bool { return pl.bookings.holds(s) }

// Refuse records that a node has refused a reservation. It returns for which job, on which slice and which version of its view; ok is false
// if no such reservation was asked for.
func (pl *Planner) Refuse(ask uint64) (of job.ID, s *Slice, version uint64, ok bool) {
	of, s, version, ok = pl.bookings.refuse(ask)
	pl.replan = pl.replan || ok
	return of, s, version, ok
}

// Asked is the node that a reservation is asked of, and for which job; empty if none is under this number.
func (pl *Planner) Asked(ask uint64) (job.NodeID, job.ID) { return pl.bookings.asked(ask) }

// Lapse forgets what nobody has answered in time.
func (pl *Planner) Lapse(now quantity.Instant) { pl.replan = pl.bookings.lapse(now) || pl.replan }

// Unanswered is when the oldest unanswered request is to be looked at again.
func (pl *Planner) Unanswered() quantity.Instant { return pl.bookings.unanswered() }

// ReservedFor is the first slice on which time is reserved for a job, with the reservation; nil if there is none.
func (pl *Planner) ReservedFor(id job.ID) (*Slice, *protocol.Reservation) {
	return pl.bookings.reservedFor(id)
}

// Nodes returns the slices of each node, smallest first, in the order of the nodes' ids. Read only; valid until the next Place.
func (pl *Planner) Nodes() [][]*Slice { return pl.survey.list() }

// Search finds a job's earliest placement on some nodes, given when each slice is free. It decides nothing.
func (pl *Planner) Search(now quantity.Instant, j *Job, nodes [][]*Slice, free func(*Slice) []protocol.Gap) (Placement, bool) {
	return pl.survey.search(now, j, nodes, free)
}

// Within are the slices that stand together on a level, each from the smallest on.
func (pl *Planner) Within(level job.Level) [][]*Slice { return pl.survey.within(level) }

// Reach is the most slices that could ever run a job together, as close as it asks for.
func (pl *Planner) Reach(now quantity.Instant, j *Job) int { return pl.survey.reach(now, j) }

// Could is how many slices could ever run a job together, as far as nothing keeps them for good, wherever they lie.
func (pl *Planner) Could(now quantity.Instant, j *Job) int { return pl.survey.could(now, j) }

// GuestPlace is the earliest place that a guest could have from an instant on around those of all other reserved jobs. worthy: it would be
// kept, if nobody comes in between. It changes nothing that is decided.
func (pl *Planner) GuestPlace(now, from quantity.Instant, j *Job) (p Placement, worthy, found bool) {
	p, found = pl.survey.search(from, j, pl.survey.list(), func(s *Slice) []protocol.Gap { return s.beside(now, j) })
	if !found || !pl.order.byIndex || j.rank > 0 || pl.floor.Late().Due(j.Submitted(), j.Spec()) <= now {
		return p, found, found
	}
	return p, pl.order.outweighs(now, j, &p, func(s *Slice) []protocol.Gap { return s.Free(now, nil) }), true
}

// Took says that a guest runs on its place, which is given back as a reservation: the budget of the late pays for it since it was held.
func (pl *Planner) Took(j *Job) {
	if j.rank > 0 {
		pl.late.charge(&pl.reserved[j.rank-1])
	}
}
