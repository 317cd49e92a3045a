package market

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
)

// A job is late when it has waited too long (starvation.Limit). The first of those that are is given the next window that it can use,
// whatever others are worth, as long as the budget of the late has credit; one behind it only if there is credit left for the first after that. So who could
// use only few windows is not kept from them by those who can use many (adr 0035).

// lateness is what a floor keeps of jobs that are late. Soft state: after a restart nobody has been given anything.
type lateness struct {
	budget starvation.Budget
	// dues are when jobs of the floor will be late.
	dues alarm.Heap[*Job]
	// late are by class the ranked jobs that are, in order.
	late []ranking.List[*Job]
	// heeded is the first late job that no window holds, and that waits for credit (Heed); nobody's if its instant is Never.
	heeded Turn
}

// Turn is a job's place among those that are late: who was to be served first comes first.
type Turn struct {
	Due  quantity.Instant
	Name job.ID
}

// Nobody has a turn.
func Nobody() Turn { return Turn{Due: quantity.Never} }

// Before says whether it is the turn of one job sooner than of another.
func (t Turn) Before(u Turn) bool {
	return cmp.Or(cmp.Compare(t.Due, u.Due), cmp.Compare(t.Name, u.Name)) < 0
}

func (j *Job) turn() Turn { return Turn{j.due, j.Name()} }

// isLate says whether it is by now.
func (j *Job) isLate(now quantity.Instant) bool { return j.due <= now }

func byTurn(a, b *Job) int {
	if c := cmp.Compare(a.due, b.due); c != 0 {
		return c
	}
	return byName(a, b)
}

// inTurn ranks jobs so.
var inTurn = ranking.Order[*Job]{Compare: byTurn, Key: func(j *Job) ranking.Key { return ranking.Key{int64(j.due)} }} //nolint:gochecknoglobals // read-only by use; Go has no constant structs

// Length is a job's own length as it was declared: the run time of all its work on one slice of the reference speed. Nobody knows it of a rigid job
// without a walltime, which counts as one of the horizon.
func Length(spec *job.Spec, horizon time.Duration) time.Duration {
	switch {
	case spec.Kind != job.Rigid:
		return time.Duration(quantity.MulDiv(int64(spec.PerUnit), spec.Total, 1))
	case spec.Walltime == 0:
		return horizon
	default:
		return spec.WalltimeAt(1000)
	}
}

// Due is when a job that came at an instant is late.
func (f *Floor) Due(submitted quantity.Instant, spec *job.Spec) quantity.Instant {
	return f.cfg.Starvation.Due(submitted, Length(spec, f.cfg.Horizon))
}

// expect has a job that has come to the floor be late when it is due.
func (f *Floor) expect(j *Job) {
	j.due = f.Due(j.Demand.Submitted(), j.Spec())
	if f.plain == nil {
		f.dues.Set(&j.slots.due, j, j.due)
	}
}

// ripen takes in who has become late.
func (f *Floor) ripen(now quantity.Instant) {
	for {
		j, ok := f.dues.Due(now)
		if !ok {
			return
		}
		f.enterLate(j)
	}
}

// knownLate says whether it has been taken in that the job is late.
func (j *Job) knownLate() bool { return j.slots.due == 0 && j.due != quantity.Never }

// enterLate puts a ranked job that is late among those of all classes that it can use, leaveLate takes it out.
func (f *Floor) enterLate(j *Job) {
	if !j.ranked || j.inLate || j.active == 0 || !j.knownLate() {
		return
	}
	j.inLate = true
	for i := range f.classes {
		if i < len(j.answers) && j.answers[i].need != never {
			f.late[i].Insert(inTurn, j.answers[i].need, j)
		}
	}
}

func (f *Floor) leaveLate(j *Job) {
	if !j.inLate {
		return
	}
	j.inLate = false
	for i := range j.answers {
		if j.answers[i].need != never {
			f.late[i].Remove(inTurn, j)
		}
	}
}

// Credit is what the late may be given now before others, below 0 if they have had more.
func (f *Floor) Credit(now quantity.Instant) int64 {
	f.budget.Fill(now)
	return f.budget.Credit()
}

// Spend takes what was given to a late job out of the budget; what it did not use comes back as a negative cost.
func (f *Floor) Spend(cost int64) { f.budget.Spend(cost) }

// Solvent is when there may be credit for a cost.
func (f *Floor) Solvent(cost int64) quantity.Instant { return f.budget.Solvent(cost) }

// Heed keeps credit for a late job that no window holds: nobody behind it is given what would leave none.
func (f *Floor) Heed(t Turn) { f.heeded = t }

// FirstLate is the first late job that could use a window if there was one, and nobody if there is none.
func (f *Floor) FirstLate(now quantity.Instant) Turn {
	first := Nobody()
	sooner := func(j *Job) {
		if t := j.turn(); t.Before(first) {
			first = t
		}
	}
	if f.plain != nil {
		for _, j := range f.jobs {
			if j.isLate(now) && f.couldUse(now, j) {
				sooner(j)
			}
		}
		return first
	}
	f.refreshIndex(now)
	for i := range f.late {
		if j, ok := f.late[i].First(never - 1); ok {
			sooner(j)
		}
	}
	for _, j := range f.unindexed {
		if j.active > 0 && j.isLate(now) && j.turn().Before(first) && f.couldUse(now, j) {
			sooner(j)
		}
	}
	return first
}

// LateWaits says whether somebody is late who may be given the next window that it can use.
func (f *Floor) LateWaits(now quantity.Instant) bool {
	return f.Credit(now) > 0 && f.FirstLate(now) != Nobody()
}

// couldUse says whether some class has windows for a job. An agent may be silent: nobody waits for it.
func (f *Floor) couldUse(now quantity.Instant, j *Job) bool {
	if j.Spec().External || j.Ineligible(now) != Eligible {
		return false
	}
	for _, c := range f.classes {
		if a, simple := f.answer(j, c); simple && a.need != never {
			return true
		} else if _, ok := f.contends(now, j, c); !simple && ok {
			return true
		}
	}
	return false
}

// entitled says whether a late job may be given something that costs so much, with this credit: it is the first, or there is credit
// for the first after that.
func entitled(t, first Turn, credit, cost int64) bool {
	return credit > 0 && (!first.Before(t) || credit-cost > 0)
}

// lateFor is the late job that is given a window instead of one that the order gives it, with what that costs; nil if there is none. all: everybody is
// looked at, else those of some that bid.
func (f *Floor) lateFor(now quantity.Instant, pick *Job, s *Slice, w *window, some []*Job, all bool) (*Job, int64) {
	if f.budget.Credit() <= 0 {
		return nil, 0
	}
	var late *Job
	if all {
		late = f.firstLateFor(now, s, w)
	} else {
		for _, j := range some {
			if j.bids && !j.Spec().External && j.isLate(now) && (late == nil || byTurn(j, late) < 0) {
				late = j
			}
		}
	}
	return f.entitled(now, late, pick, s.class, w)
}

// firstLateFor is the first late job that could use a window, nil if there is none. Agents are not asked.
func (f *Floor) firstLateFor(now quantity.Instant, s *Slice, w *window) *Job {
	f.refreshIndex(now)
	late, _ := f.late[s.class.at].First(w.length(now))
	for _, j := range f.unindexed {
		if j.active == 0 || j.Spec().External || !j.isLate(now) || late != nil && byTurn(late, j) < 0 || j.Ineligible(now) != Eligible || j.Avoids(s) {
			continue
		}
		if _, r := f.Fit(j, s.class, max(w.start, now), w.end); r.Why == atomizer.Interested {
			late = j
		}
	}
	return late
}

// entitled is the first late job that could use a window, with what its piece costs; nil if it may not have that before others, or has it anyway.
func (f *Floor) entitled(now quantity.Instant, late, pick *Job, c *Class, w *window) (*Job, int64) {
	credit := f.budget.Credit()
	if late == nil || late == pick || credit <= 0 {
		return nil, 0
	}
	p, r := f.Fit(late, c, max(w.start, now), w.end)
	if r.Why != atomizer.Interested {
		return nil, 0
	}
	cost := c.cost(p.Length)
	if !entitled(late.turn(), f.firstTurn(now), credit, cost) {
		return nil, 0
	}
	return late, cost
}

// precedes says whether a bid for a slice of a class is a late job's that may have it before others.
func (f *Floor) precedes(now quantity.Instant, t *bid, c *Class) bool {
	credit := f.budget.Credit()
	return credit > 0 && t.job.isLate(now) && entitled(t.job.turn(), f.firstTurn(now), credit, t.cost(c))
}

// firstTurn is whose turn it is of all that are late.
func (f *Floor) firstTurn(now quantity.Instant) Turn {
	first := f.FirstLate(now)
	if f.heeded.Before(first) {
		return f.heeded
	}
	return first
}

// cost of a time on a slice of the class.
func (c *Class) cost(d time.Duration) int64 { return starvation.Cost(d, c.Speed) }
