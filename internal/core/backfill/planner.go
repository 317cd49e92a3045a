package backfill

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/market"
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
	// ByAge: gangs stand in line by age whatever the policy, since others do not stand in its order (tickets that search for places).
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
	// slices in the floor's order, holding those with a rigid job's reservation.
	slices  []*Slice
	holding bitset.Set
	// replan: something has changed since the last pass, whose result else is valid until validUntil.
	replan     bool
	validUntil quantity.Instant
	// nextStart is when the first placement begins of those that were found and are not reserved.
	nextStart quantity.Instant
	// pending are reservations asked for and not seen in a view yet, withdrawals those asked to be withdrawn; both in order of time.
	pending     []*pending
	withdrawals []withdrawal
	// nonePlaceable: the pass nonePlaceableAt searched for the whole line, everybody was eligible, and there was a placement for nobody, as in
	// every pass since. newcomers have entered the line or changed since.
	nonePlaceable   bool
	nonePlaceableAt uint64
	newcomers       []*Job
	// reserved jobs are served, in order; before are those of the last pass, whose room the next one takes. The places of the first lookedBack among
	// before are accounted for in this pass: served again, or their nodes are dirty.
	reserved, before []reservation
	lookedBack       int
	late
	order
	survey
}

// Job is one rigid job as a planner keeps it; whoever owns the job holds it, with its side as the Demand. All of it is soft.
type Job struct {
	Demand
	// rank is 1 + its index among the reserved jobs, 0 if it is none; rankBefore the same in the last pass.
	rank, rankBefore int
	// place is what was found for it, in the pass searchedIn, with so many reserved jobs ahead of it.
	place      Placement
	searchedIn uint64
	ahead      int
	// reservedAt is when its placement was last asked to be kept, refusedAt when an ask of it was refused.
	reservedAt, refusedAt quantity.Instant
	// queued: it is in the line, which holds only those that the discipline lines up; queuedStale: that may have changed.
	queued      bool
	queuedStale dirty.Mark
	// due is when it is late, if it is a gang, and dueSlot keeps its alarm; late: it is. paid is what the budget has paid for its place since heldSince, 0 if it holds
	// none by being late, and speeds those of its slices then.
	due          quantity.Instant
	dueSlot      int
	isLate       bool
	paid, speeds int64
	heldSince    quantity.Instant
	// planned: its placement is later, and better than what the market could give it now.
	planned bool
	// index of it where that is greatest, for each of its slices.
	index int64
	// Guest is what makes it a part of a gang of another home's; nil: it is a job of our own.
	Guest *Guest
}

// Slice is one slice as a planner keeps it; whoever owns the slice holds it, with its side as the Supply.
type Slice struct {
	Supply
	// pending is what was asked for on it and is not in a view yet.
	pending []*pending
	// placed are the placements on it of the reserved jobs so far in this pass, of all of them when it is over.
	placed []protocol.Gap
	// node that it is of. surveyed is the time and surveyedClass the class that the last plan saw.
	node          *node
	surveyed      []protocol.Gap
	surveyedClass *market.Class
}

// New makes a planner over the slices of a floor.
func New(cfg Config, floor *market.Floor, sale Sale) *Planner {
	return &Planner{cfg: cfg, floor: floor, sale: sale, order: newOrder(cfg.Gangs && floor.Indexes() && !cfg.ByAge)}
}

// Placement is where a job's time is reserved, or will be; ok is false if it is no reserved job.
func (j *Job) Placement() (p Placement, ok bool) {
	if j == nil || j.rank == 0 {
		return Placement{}, false
	}
	return j.place, true
}

// Planned says whether it waits for a placement that is better than any window. A job without a plan does not.
func (j *Job) Planned() bool { return j != nil && j.planned }

// InvalidatePlacement has the next pass search everywhere for the job's placement: what it can use has changed.
func (j *Job) InvalidatePlacement() {
	if j != nil {
		j.searchedIn = 0
	}
}

// Refused says that a node refused what was asked for the job.
func (j *Job) Refused(now quantity.Instant) {
	if j != nil {
		j.refusedAt = now
	}
}

// width is how many slices it needs at once.
func (j *Job) width() int { return max(1, j.Spec().Slices) }

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
	pl.dirtySlices.Put(s.At())
}

// UpdateLine brings the line of rigid jobs up to date. Those that enter it are sorted into it together.
func (pl *Planner) UpdateLine() {
	pl.reindexLine()
	if pl.requeue.Len() > 0 {
		pl.requeue.Drain(pl.updateQueued)
		pl.line.Settle(pl.inLine)
	}
}

// Gangs are the jobs of several slices, in no order.
func (pl *Planner) Gangs() []*Job { return pl.gangs }

// Reserved is how many jobs hold a place.
func (pl *Planner) Reserved() int { return len(pl.reserved) }

// Anew has the next pass search exhaustively, with the line rebuilt from these jobs and nothing cached. For tests, which compare decisions
// with it.
func (pl *Planner) Anew(jobs []*Job) {
	for j := range pl.line.All() {
		j.queued = false // also of those that are over, and are none of these jobs
	}
	pl.line, pl.gangs, pl.nonePlaceable = ranking.List[*Job]{}, nil, false
	for j := range pl.late.lateGangs.All() {
		j.isLate = false
	}
	for _, j := range pl.lateAlarms.All() {
		j.dueSlot = 0
	}
	pl.late.lateGangs, pl.late.lateAlarms = ranking.List[*Job]{}, alarm.Heap[*Job]{}
	pl.requeue.Clear()
	for _, j := range jobs {
		pl.updateQueued(j)
	}
	pl.line.Settle(pl.inLine)
	for _, s := range pl.slices {
		s.pending = nil
	}
	for _, p := range pl.pending {
		p.slice.pending = append(p.slice.pending, p)
	}
	pl.replan, pl.nodesStale, pl.exhaustive = true, true, true
}

// deepest bounds how many rigid jobs hold a placement, whatever the discipline: the cost of a step grows with it.
const deepest = 128

// updateQueued enters a rigid job in the line if it waits, and takes it out if it does not.
func (pl *Planner) updateQueued(j *Job) {
	waits := j.Waiting() && (pl.cfg.Lines(j.width()) || j.Guest != nil)
	switch {
	case waits && !j.queued:
		j.index = pl.indexOf(j)
		pl.line.Gather(pl.inLine, 0, j)
		j.searchedIn = 0
	case !waits && j.queued:
		pl.line.Remove(pl.inLine, j)
	}
	j.queued = waits
	pl.scheduleLateness(j)
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

// reservation is a reserved job with its placement.
type reservation struct {
	job   *Job
	place Placement
}

// Plan serves the reserved jobs before the market opens, as EASY backfill does with one and conservative backfill with all of them: one
// starts as soon as its placement is free, and until then its earliest one is reserved, so that what is sold before it can not
// delay it. All other rigid jobs answer windows like everybody else, if they may. It returns when to look again: a reserved placement
// is no window of the market's, so nobody else would wake the zone when it begins. As long as nothing changes, placements only get
// worse but for those that were found, so the plan stands until the first of them begins.
func (pl *Planner) Plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	pl.promoteLate(now)
	pl.replan = pl.replan || pl.prevails(now)
	if pl.replan || pl.validUntil <= now {
		if pl.replan, pl.validUntil = false, quantity.Never; !pl.idle() {
			pl.validUntil = pl.plan(now, out)
		}
	}
	return min(pl.validUntil, pl.lateAlarms.Next(), pl.creditAt(now))
}

// idle reports whether nobody waits and nothing is reserved. Dirty slices then wait until somebody comes.
func (pl *Planner) idle() bool {
	return pl.line.Empty() && len(pl.reserved) == 0 && len(pl.holders) == 0 && pl.holding.Next(0) < 0
}

// plan finds the placements of reserved jobs from what is sold alone, as if no place were reserved anywhere, and then does what leads
// there: first what is in the way is withdrawn, and a place is asked for only when a view says that it is not. So one plan
// is not moved by what the one before asked for, and a plan that is followed is found again.
func (pl *Planner) plan(now quantity.Instant, out *protocol.Out) quantity.Instant {
	pl.placeReserved(now)
	pl.dropReservations(now, out)
	wake := pl.nextStart
	for i := range pl.reserved {
		if h := &pl.reserved[i]; h.job.Guest != nil {
			wake = min(wake, pl.reserve(now, h, out)) // its home starts it
		} else if h.place.Start <= now {
			wake = min(wake, pl.start(now, h, out))
		} else {
			wake = min(wake, h.place.Start, pl.reserve(now, h, out))
		}
	}
	return wake
}

// placeReserved finds the reserved jobs and their placements, each around those ahead of it. Nodes on which a placement comes or goes are
// dirty for the reserved jobs behind it.
func (pl *Planner) placeReserved(now quantity.Instant) {
	pl.resurvey(now)
	pl.reserved, pl.before, pl.lookedBack = pl.before[:0], pl.reserved, 0
	for i := range pl.before {
		h := &pl.before[i]
		h.job.rank, h.job.rankBefore = 0, h.job.rank
		for _, s := range h.place.Slices {
			s.placed = s.placed[:0]
		}
		if !h.job.queued || h.job.Waits(now) != market.Eligible {
			pl.markDirty(&h.place)
		}
	}
	pl.nextStart = quantity.Never
	pl.findReserved(now)
	for i := range pl.before {
		h := &pl.before[i]
		if h.job.rankBefore = 0; h.job.rank == 0 {
			pl.markDirty(&h.place)
			h.job.place, h.job.searchedIn = Placement{}, 0 // the next search is a full one: what was known is forgotten
			pl.setPlanned(h.job, false)
		}
	}
	clear(pl.before)
	for i := range pl.reserved {
		// Where all slices are alike to the job, no window that is open could hold it before its place does.
		h := &pl.reserved[i]
		pl.setPlanned(h.job, len(h.job.Spec().Speeds) > 0 && h.place.Start > now)
	}
	for n := pl.dirtyNodes.Next(0); n >= 0; n = pl.dirtyNodes.Next(n + 1) {
		for _, s := range pl.nodes[n].slices {
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
	if pl.stillNonePlaceable(now, most) {
		return
	}
	clear(pl.newcomers)
	none := most > 0
	pl.nonePlaceable, pl.newcomers = false, pl.newcomers[:0]
	pl.serveLate(now)
	if pl.byIndex {
		pl.serveInOrder(now)
		return
	}
	for j := range pl.line.All() {
		if most == 0 && !j.wide() || j.isLate || j.Waits(now) != market.Eligible {
			none = false
			continue
		}
		found := pl.consider(now, j, most, func() bool { return most > 0 || j.place.Start <= now })
		none = none && !found
		if most > 0 && len(pl.reserved) == most {
			return
		}
	}
	pl.nonePlaceable, pl.nonePlaceableAt = none, pl.generation
}

// consider finds a job's placement, around those of the reserved jobs before it, and makes the job one of them if it is to be served there. It says
// whether there is one.
func (pl *Planner) consider(now quantity.Instant, j *Job, most int, serve func() bool) (found bool) {
	old := j.place
	found = pl.findPlacement(now, j, most)
	serves := found && serve()
	moved := !found || !j.place.same(&old) || serves != (j.rankBefore > 0)
	if moved && j.rankBefore > 0 {
		pl.markDirty(&old)
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
		pl.markDirty(&j.place)
	}
	pl.reserved = append(pl.reserved, reservation{j, j.place})
	j.rank = len(pl.reserved)
	for _, s := range j.place.Slices {
		s.placed = append(s.placed, protocol.Gap{Start: j.place.Start, End: j.place.End})
	}
	return true
}

// stillNonePlaceable says whether there is a placement for nobody, as in the plan before: no time has changed since, and those who have come
// or changed find none either. So a long line that waits for slices which are drained is not asked again by everyone who joins it.
// The plan then counts as the one before, which looked at the others.
func (pl *Planner) stillNonePlaceable(now quantity.Instant, most int) bool {
	if !pl.nonePlaceable || pl.dirtyNodes.Next(0) >= 0 || pl.generation != pl.nonePlaceableAt+1 {
		return false
	}
	pl.generation--
	for _, j := range pl.newcomers {
		if j.queued && (j.Waits(now) != market.Eligible || pl.findPlacement(now, j, most)) {
			pl.generation++
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
