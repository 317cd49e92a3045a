package backfill

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Where nobody holds a reservation by age (skip, or the policy's index), a gang among short jobs may never find its slices free together. So gangs that are late
// (market.Turn) hold one, a few at once and as far as the budget of the late goes: it pays from when their slices are held, though others may still run there, to
// the end of their walltime. Jobs of one slice need none: when it is their turn they are given the next window (adr 0035).

// late is what a planner keeps of gangs that are. All of it is soft.
type late struct {
	// dues are when gangs that wait will be late, waiting those that are, in turn.
	dues    alarm.Heap[*Job]
	waiting ranking.List[*Job]
	// holders hold a place because they are late.
	holders []*Job
	// next is whose turn it was at the last plan of those that answer windows, heeded the gang that waited for its place to be paid for, and need the credit
	// that there must be more of.
	next, heeded market.Turn
	need         int64
}

func (j *Job) turn() market.Turn { return market.Turn{Due: j.due, Name: j.Name()} }

func byTurn(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Name(), b.Name()))
}

// inTurn ranks gangs so.
var inTurn = ranking.Order[*Job]{Compare: byTurn, Key: func(j *Job) ranking.Key { return ranking.Key{int64(j.due)} }} //nolint:gochecknoglobals // read-only by use; Go has no constant structs

// spares says whether late gangs may hold places: where nobody does by age.
func (pl *Planner) spares() bool {
	return (pl.cfg.Reserve == 0 || pl.byIndex) && pl.cfg.Overtake && pl.cfg.Late > 0
}

// expect has a gang that joins the line be late when it is due, and forgets one that leaves it.
func (pl *Planner) expect(j *Job) {
	switch {
	case !pl.spares() || !j.wide():
	case j.lined && !j.isLate:
		j.due = pl.floor.Due(j.Submitted(), j.Spec())
		pl.dues.Set(&j.dueSlot, j, j.due)
	case !j.lined:
		pl.dues.Set(&j.dueSlot, j, quantity.Never)
		if j.isLate {
			pl.late.waiting.Remove(inTurn, j)
			j.isLate = false
		}
	}
}

// ripen takes in who has become late, and looks whether there is credit now for the gang that waits for it.
func (pl *Planner) ripen(now quantity.Instant) {
	for {
		j, ok := pl.dues.Due(now)
		if !ok {
			break
		}
		j.isLate, pl.replan = true, true
		pl.late.waiting.Insert(inTurn, 0, j)
	}
	if pl.waits() && !pl.replan && (pl.floor.Credit(now) > pl.need || pl.floor.FirstLate(now) != pl.next) {
		pl.replan = true
	}
}

// waits says whether a gang waits for credit.
func (pl *Planner) waits() bool { return pl.heeded.Due != quantity.Never && pl.heeded.Name != "" }

// solvent is when there may be credit for the gang that waits for it.
func (pl *Planner) solvent(now quantity.Instant) quantity.Instant {
	if !pl.waits() {
		return quantity.Never
	}
	return max(now+1, pl.floor.Solvent(pl.need))
}

// cost of a placement from an instant to its end.
func (p *Placement) cost(from quantity.Instant) (sum int64) {
	for _, s := range p.Slices {
		sum += starvation.Cost(p.End.Sub(from), s.Class().Speed)
	}
	return sum
}

// settle has the budget pay what the place of a late gang that starts now costs from when it was held: the slices may have stood idle since.
func (pl *Planner) settle(h *reservation) {
	if j := h.job; j.paid != 0 {
		cost := h.place.cost(j.heldSince)
		pl.floor.Spend(cost - j.paid)
		j.paid = cost
	}
}

// release ends that a gang holds a place. Of one that does not run the budget has paid too much: its slices were held for it no longer than until now.
func (pl *Planner) release(now quantity.Instant, j *Job, ran bool) {
	if !ran {
		pl.floor.Spend(starvation.Cost(now.Sub(j.heldSince), j.speeds) - j.paid)
	}
	j.paid = 0
}

// hold has a gang hold its place from now on, and the budget pay for its run.
func (pl *Planner) hold(now quantity.Instant, j *Job) {
	j.paid, j.heldSince, j.speeds = j.place.cost(j.place.Start), now, 0
	for _, s := range j.place.Slices {
		j.speeds += s.Class().Speed
	}
	pl.floor.Spend(j.paid)
	pl.holders = append(pl.holders, j)
}

// serveLate serves the late gangs in turn: those that hold a place keep it, and the next is given one if there is credit, as far as there may be more.
func (pl *Planner) serveLate(now quantity.Instant) {
	if !pl.spares() {
		return
	}
	pl.holders = slices.DeleteFunc(pl.holders, func(j *Job) bool {
		if j.lined && j.Waits(now) == market.Eligible || !j.lined && j.Active() && j.Asking() {
			return false
		}
		pl.release(now, j, !j.lined && j.Active())
		return true
	})
	pl.heeded, pl.next = market.Nobody(), market.Nobody()
	if !pl.late.waiting.Empty() {
		pl.next = pl.floor.FirstLate(now)
	}
	for j := range pl.late.waiting.All() {
		if slices.Contains(pl.worthy, j) || j.Waits(now) != market.Eligible {
			continue
		}
		most := 0
		if j.paid != 0 {
			most = pl.cfg.Late
		}
		found := pl.consider(now, j, most, func() bool { return j.paid != 0 || j.place.Start <= now && !pl.byIndex || pl.mayHold(now, j) })
		if !found && j.paid != 0 {
			pl.release(now, j, false)
			pl.holders = slices.DeleteFunc(pl.holders, func(o *Job) bool { return o == j })
		}
	}
	pl.floor.Heed(pl.heeded)
}

// mayHold gives a late gang a place to hold if it may have one: if it is its turn there need only be some credit, else some must be left for whose turn it is.
func (pl *Planner) mayHold(now quantity.Instant, j *Job) bool {
	if len(pl.holders) >= pl.cfg.Late || pl.waits() {
		return false
	}
	need := int64(0)
	if pl.next.Before(j.turn()) {
		need = j.place.cost(j.place.Start)
	}
	if pl.floor.Credit(now) <= need {
		pl.heeded, pl.need = j.turn(), need
		return false
	}
	pl.hold(now, j)
	return true
}
