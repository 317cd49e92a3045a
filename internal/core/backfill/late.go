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
	// lateAlarms are when waiting gangs become late; lateGangs are those that are, in turn.
	lateAlarms alarm.Heap[*Job]
	lateGangs  ranking.List[*Job]
	// holders hold a place because they are late.
	holders []*Job
	// firstTurn was whose turn it was at the last pass among those that answer windows; creditWaiter is the gang that waits until the budget can
	// pay for its placement, which takes more credit than need.
	firstTurn, creditWaiter market.Turn
	need                    int64
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

// scheduleLateness sets the alarm of a gang that enters the line, and clears it for one that leaves.
func (pl *Planner) scheduleLateness(j *Job) {
	switch {
	case !pl.spares() || !j.wide():
	case j.queued && !j.isLate:
		j.due = pl.floor.Due(j.Submitted(), j.Spec())
		pl.lateAlarms.Set(&j.dueSlot, j, j.due)
	case !j.queued:
		pl.lateAlarms.Set(&j.dueSlot, j, quantity.Never)
		if j.isLate {
			pl.late.lateGangs.Remove(inTurn, j)
			j.isLate = false
		}
	}
}

// promoteLate moves gangs whose alarm has passed to lateGangs, and plans anew if there is credit now for the one that waits for it.
func (pl *Planner) promoteLate(now quantity.Instant) {
	for {
		j, ok := pl.lateAlarms.Due(now)
		if !ok {
			break
		}
		j.isLate, pl.replan = true, true
		pl.late.lateGangs.Insert(inTurn, 0, j)
	}
	if pl.awaitsCredit() && !pl.replan && (pl.floor.Credit(now) > pl.need || pl.floor.FirstLate(now) != pl.firstTurn) {
		pl.replan = true
	}
}

// awaitsCredit reports whether a gang waits for credit.
func (pl *Planner) awaitsCredit() bool {
	return pl.creditWaiter.Due != quantity.Never && pl.creditWaiter.Name != ""
}

// creditAt returns when there may be credit for the gang that waits for it, Never if none does.
func (pl *Planner) creditAt(now quantity.Instant) quantity.Instant {
	if !pl.awaitsCredit() {
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

// charge has the budget pay what the placement of a late gang that starts now costs from when it was held: its slices may have stood idle since.
func (pl *Planner) charge(h *reservation) {
	if j := h.job; j.paid != 0 {
		cost := h.place.cost(j.heldSince)
		pl.floor.Spend(cost - j.paid)
		j.paid = cost
	}
}

// endHold ends a late gang's hold of its placement. For one that does not run the budget gets back what it paid beyond now.
func (pl *Planner) endHold(now quantity.Instant, j *Job, ran bool) {
	if !ran {
		pl.floor.Spend(starvation.Cost(now.Sub(j.heldSince), j.speeds) - j.paid)
	}
	j.paid = 0
}

// beginHold has a late gang hold its placement from now on, and the budget pay for its run.
func (pl *Planner) beginHold(now quantity.Instant, j *Job) {
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
		if j.queued && j.Waits(now) == market.Eligible || !j.queued && j.Active() && j.Asking() {
			return false
		}
		pl.endHold(now, j, !j.queued && j.Active())
		return true
	})
	pl.creditWaiter, pl.firstTurn = market.Nobody(), market.Nobody()
	if !pl.late.lateGangs.Empty() {
		pl.firstTurn = pl.floor.FirstLate(now)
	}
	for j := range pl.late.lateGangs.All() {
		if slices.Contains(pl.worthy, j) || j.Waits(now) != market.Eligible {
			continue
		}
		most := 0
		if j.paid != 0 {
			most = pl.cfg.Late
		}
		found := pl.consider(now, j, most, func() bool { return j.paid != 0 || j.place.Start <= now && !pl.byIndex || pl.mayHold(now, j) })
		if !found && j.paid != 0 {
			pl.endHold(now, j, false)
			pl.holders = slices.DeleteFunc(pl.holders, func(o *Job) bool { return o == j })
		}
	}
	pl.floor.Heed(pl.creditWaiter)
}

// mayHold gives a late gang a place to hold if it may have one: if it is its turn there need only be some credit, else some must be left for whose turn it is.
func (pl *Planner) mayHold(now quantity.Instant, j *Job) bool {
	if len(pl.holders) >= pl.cfg.Late || pl.awaitsCredit() {
		return false
	}
	need := int64(0)
	if pl.firstTurn.Before(j.turn()) {
		need = j.place.cost(j.place.Start)
	}
	if pl.floor.Credit(now) <= need {
		pl.creditWaiter, pl.need = j.turn(), need
		return false
	}
	pl.beginHold(now, j)
	return true
}
