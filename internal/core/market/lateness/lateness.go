// Package lateness gives windows to jobs that are late, since they have waited past their starvation limit, whatever others are worth, as
// far as a budget goes. It must not know how windows are sold to the others.
package lateness

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
)

// Turn is a job's place among the late ones: the one whose limit passed first comes first.
type Turn struct {
	Due  quantity.Instant
	Name job.ID
}

// TurnOf is that of a job in an index, Nobody has none.
func TurnOf(j *index.Job) Turn { return Turn{j.Due(), j.Name()} }

// Nobody has a turn.
func Nobody() Turn { return Turn{Due: quantity.Never} }

// Before says whether it is the turn of one job sooner than of another.
func (t Turn) Before(u Turn) bool {
	return cmp.Or(cmp.Compare(t.Due, u.Due), cmp.Compare(t.Name, u.Name)) < 0
}

// ByTurn orders jobs.
func ByTurn(a, b *index.Job) int {
	return cmp.Or(cmp.Compare(a.Due(), b.Due()), index.ByName(a, b))
}

// First is the first of some jobs that are late; nil if none is.
func First(now quantity.Instant, list []*index.Job) (late *index.Job) {
	for _, j := range list {
		if j.IsLate(now) && (late == nil || ByTurn(j, late) < 0) {
			late = j
		}
	}
	return late
}

// Length is a job's own length as it was declared: the run time of all its work on one slice of the reference speed. Nobody knows it of a
// rigid job without a walltime, or of one without a time or a number of its units, which count as one of the horizon.
func Length(spec *job.Spec, horizon time.Duration) time.Duration {
	switch {
	case spec.Untimed() || spec.Open():
		return horizon
	case spec.Kind != job.Rigid:
		return time.Duration(quantity.MulDiv(int64(spec.PerUnit), spec.Total, 1))
	case spec.Walltime == 0:
		return horizon
	default:
		return spec.WalltimeAt(1000)
	}
}

// Allowance decides what late jobs are given. Invariant: the first late job is given the next window that it can use as long as the budget
// has credit, one behind it only if that leaves credit for the first: so jobs that can use few windows are not kept from them by jobs that
// can use many (adr 0035). Soft: after a restart nothing has been given.
type Allowance struct {
	limit  starvation.Limit
	budget starvation.Budget
	board  *window.Board
	est    *index.Estimator
	index  *index.Index
	// heeded is the first late job that no window holds, and that waits for credit (Heed); Nobody if there is none.
	heeded Turn
}

// New is one whose budget is empty.
func New(limit starvation.Limit, board *window.Board, est *index.Estimator, x *index.Index) *Allowance {
	a := &Allowance{limit: limit, board: board, est: est, index: x, heeded: Nobody()}
	a.budget.SetShare(limit.Share)
	return a
}

// Due is when a job that came at an instant is late.
func (a *Allowance) Due(submitted quantity.Instant, spec *job.Spec) quantity.Instant {
	return a.limit.Due(submitted, Length(spec, a.est.Horizon()))
}

// Capacity adds what the time of slices that have come or gone is worth, for each millisecond.
func (a *Allowance) Capacity(more int64) { a.budget.Capacity(more) }

// Fill brings the budget up to an instant.
func (a *Allowance) Fill(now quantity.Instant) { a.budget.Fill(now) }

// Credit is what the late may be given now before others, below 0 if they have had more. Spend takes what was given to a late job out of
// it; what it did not use comes back as a negative cost. Solvent is when there may be credit for a cost.
func (a *Allowance) Credit() int64 { return a.budget.Credit() }

// CreditAt is the same at an instant.
func (a *Allowance) CreditAt(now quantity.Instant) int64 {
	a.Fill(now)
	return a.Credit()
}

// Spend takes what was given to a late job out of the budget.
func (a *Allowance) Spend(cost int64) { a.budget.Spend(cost) }

// Solvent is when there may be credit for a cost.
func (a *Allowance) Solvent(cost int64) quantity.Instant { return a.budget.Solvent(cost) }

// Heed keeps credit for a late job that no window holds: nobody behind it is given what would leave none.
func (a *Allowance) Heed(t Turn) { a.heeded = t }

// First is the first late job that could use a window if there was one, and nobody if there is none.
func (a *Allowance) First(now quantity.Instant) Turn {
	first := Nobody()
	sooner := func(j *index.Job) {
		if t := TurnOf(j); t.Before(first) {
			first = t
		}
	}
	a.index.Refresh(now)
	for _, c := range a.board.Classes() {
		if j, ok := a.index.Late(c.At(), index.Never-1); ok {
			sooner(j)
		}
	}
	for _, j := range a.index.Unindexed() {
		if j.Active() && j.IsLate(now) && TurnOf(j).Before(first) && a.index.CouldUse(now, j) {
			sooner(j)
		}
	}
	return first
}

// Waits reports whether a late job may be given the next window that it can use.
func (a *Allowance) Waits(now quantity.Instant) bool {
	a.Fill(now)
	return a.Credit() > 0 && a.First(now) != Nobody()
}

// turn is whose turn it is of all that are late.
func (a *Allowance) turn(now quantity.Instant) Turn {
	first := a.First(now)
	if a.heeded.Before(first) {
		return a.heeded
	}
	return first
}

// entitled reports whether a late job may be given something of this cost, with this credit: it is the first, or there is credit for the
// first after that.
func entitled(t, first Turn, credit, cost int64) bool {
	return credit > 0 && (!first.Before(t) || credit-cost > 0)
}

// FirstFor is the first late job that could use a window, nil if there is none. Agents are not asked.
func (a *Allowance) FirstFor(now quantity.Instant, s *window.Slice, w *window.Window) *index.Job {
	a.index.Refresh(now)
	late, _ := a.index.Late(s.Class().At(), w.Length(now))
	for _, j := range a.index.Unindexed() {
		switch {
		case !j.Active() || j.Spec().External || !j.IsLate(now) || late != nil && ByTurn(late, j) < 0:
		case j.Ineligible(now) != explain.Eligible || j.Avoids(s):
		default:
			if _, r := a.est.Fit(j, s.Class(), max(w.Start(), now), w.End()); r.Why == atomizer.Interested {
				late = j
			}
		}
	}
	return late
}

// Entitled is the first late job that could use a window, with what its piece costs; nil if it may not have that before others, or the
// order gives it to it anyway (pick).
func (a *Allowance) Entitled(now quantity.Instant, late, pick *index.Job, c *window.Class, w *window.Window) (*index.Job, int64) {
	credit := a.budget.Credit()
	if late == nil || late == pick || credit <= 0 {
		return nil, 0
	}
	p, r := a.est.Fit(late, c, max(w.Start(), now), w.End())
	if r.Why != atomizer.Interested {
		return nil, 0
	}
	cost := c.Cost(p.Length)
	if !entitled(TurnOf(late), a.turn(now), credit, cost) {
		return nil, 0
	}
	return late, cost
}

// Precedes reports whether a late job may have something of this cost before others.
func (a *Allowance) Precedes(now quantity.Instant, j *index.Job, cost int64) bool {
	credit := a.budget.Credit()
	return credit > 0 && j.IsLate(now) && entitled(TurnOf(j), a.turn(now), credit, cost)
}

// Grants decides how many wishes of late jobs, in turn, may be met now: each as far as the budget goes once those before it are met. met is
// called for each of them.
func (a *Allowance) Grants(now quantity.Instant, n int, wish func(int) (*index.Job, int64), met func(int)) {
	first, credit := a.turn(now), a.budget.Credit()
	for i := range n {
		if j, cost := wish(i); entitled(TurnOf(j), first, credit, cost) {
			met(i)
			credit -= cost
		}
	}
}
