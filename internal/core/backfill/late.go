package backfill

import (
	"cmp"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// Where nobody holds a reservation by age (skip, or the policy's index), a gang among short jobs may never find its slices free together.
// So gangs that are late (lateness.Turn) hold one, a few at once and as far as the budget of the late goes: it pays from when their slices
// are held, though others may still run there, to the end of their walltime. Jobs of one slice need none: when it is their turn they are
// given the next window (adr 0035).

// late is a planner's state of late gangs. Soft.
type late struct {
	floor *market.Floor
	// spares: late gangs may hold places, as nobody does by age; this is the most at once.
	spares bool
	most   int
	// lateAlarms are when waiting gangs become late; lateGangs are those that are, in turn.
	lateAlarms alarm.Heap[*Job]
	lateGangs  ranking.List[*Job]
	// holders hold a place because they are late.
	holders []*Job
	// firstTurn was whose turn it was at the last pass among those that answer windows; creditWaiter is the gang that waits until the
	// budget can pay for its placement, which takes more credit than need.
	firstTurn, creditWaiter lateness.Turn
	need                    int64
}

func (j *Job) turn() lateness.Turn { return lateness.Turn{Due: j.due, Name: j.Name()} }

// inTurn ranks gangs so.
//
//nolint:gochecknoglobals // read-only by use; Go has no constant structs
var inTurn = ranking.Order[*Job]{
	Compare: func(a, b *Job) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Name(), b.Name())) },
	Key:     func(j *Job) ranking.Key { return ranking.Key{int64(j.due)} },
}

// schedule sets the alarm of a gang that enters the line, and clears it for one that leaves.
func (l *late) schedule(j *Job) {
	switch {
	case !l.spares || !j.wide():
	case j.queued && !j.isLate:
		j.due = l.floor.Late().Due(j.Submitted(), j.Spec())
		l.lateAlarms.Set(&j.dueSlot, j, j.due)
	case !j.queued:
		l.lateAlarms.Set(&j.dueSlot, j, quantity.Never)
		if j.isLate {
			l.lateGangs.Remove(inTurn, j)
			j.isLate = false
		}
	}
}

// promote moves gangs whose alarm has passed to lateGangs. It reports whether to replan, which is also due if the gang that waits for
// credit has enough now.
func (l *late) promote(now quantity.Instant, replan bool) bool {
	for j := range l.lateAlarms.Past(now) {
		j.isLate, replan = true, true
		l.lateGangs.Insert(inTurn, 0, j)
	}
	return replan || l.awaitsCredit() && (l.floor.Late().CreditAt(now) > l.need || l.floor.Late().First(now) != l.firstTurn)
}

// awaitsCredit reports whether a gang waits for credit.
func (l *late) awaitsCredit() bool {
	return l.creditWaiter.Due != quantity.Never && l.creditWaiter.Name != ""
}

// creditAt returns when there may be credit for the gang that waits for it, Never if none does.
func (l *late) creditAt(now quantity.Instant) quantity.Instant {
	if !l.awaitsCredit() {
		return quantity.Never
	}
	return max(now+1, l.floor.Late().Solvent(l.need))
}

// cost of a placement from an instant to its end.
func (p *Placement) cost(from quantity.Instant) (sum int64) {
	for _, s := range p.Slices {
		sum += starvation.Cost(p.End.Sub(from), s.Class().Speed)
	}
	return sum
}

// charge makes the budget pay the cost of a late gang's placement from when it was held: its slices may have been idle since.
func (l *late) charge(h *reservation) {
	if j := h.job; j.paid != 0 {
		cost := h.place.cost(j.heldSince)
		l.floor.Late().Spend(cost - j.paid)
		j.paid = cost
	}
}

// endHold ends a late gang's hold of its placement. For one that does not run the budget gets back what it paid beyond now.
func (l *late) endHold(now quantity.Instant, j *Job, ran bool) {
	if !ran {
		l.floor.Late().Spend(starvation.Cost(now.Sub(j.heldSince), j.speeds) - j.paid)
	}
	j.paid = 0
}

// beginHold has a late gang hold its placement from now on, and the budget pay for its run.
func (l *late) beginHold(now quantity.Instant, j *Job) {
	j.paid, j.heldSince, j.speeds = j.place.cost(j.place.Start), now, 0
	for _, s := range j.place.Slices {
		j.speeds += s.Class().Speed
	}
	l.floor.Late().Spend(j.paid)
	l.holders = append(l.holders, j)
}

// mayHold gives a late gang a place to hold if it may have one: if it is its turn there need only be some credit, else some must be left
// for whose turn it is.
func (l *late) mayHold(now quantity.Instant, j *Job) bool {
	if len(l.holders) >= l.most || l.awaitsCredit() {
		return false
	}
	need := int64(0)
	if l.firstTurn.Before(j.turn()) {
		need = j.place.cost(j.place.Start)
	}
	if l.floor.Late().CreditAt(now) <= need {
		l.creditWaiter, l.need = j.turn(), need
		return false
	}
	l.beginHold(now, j)
	return true
}
