package airlock

import (
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config is what it goes by.
func (a *Airlock) Config() *Config { return &a.cfg }

// Decide says what is to be done now. The decision is valid until the next call.
func (a *Airlock) Decide(now quantity.Instant, s *Snapshot) *Decision {
	if len(s.Tasks) > MaxTasks {
		invariant.Check(false, "airlock: %d tasks are more than %d", len(s.Tasks), MaxTasks)
	}
	d := a.begin(now, s)
	if s.Capacity > 0 {
		switch d.Level {
		case Calm:
		case Guarded:
			a.foresee(now, s)
		case Severe:
			a.foresee(now, s)
			a.relieve(now, s)
		case Emergency:
			if !a.moveOut(now, s) {
				a.rescue(now, s)
			}
		}
	}
	a.resumeOvertime(now, s)
	return d
}

// Overdue says what is to go on, and which entries are over. It is the part of Decide that holds also where a snapshot's numbers may be
// old.
func (a *Airlock) Overdue(now quantity.Instant, s *Snapshot) *Decision {
	d := a.begin(now, s)
	a.resumeOvertime(now, s)
	return d
}

// begin reads the snapshot, resumes the suspended tasks that fit, and ends or asks those whose entry has stood too long.
func (a *Airlock) begin(now quantity.Instant, s *Snapshot) *Decision {
	d := &a.d
	*d = Decision{Reading: a.cfg.Read(s), Blocked: -1, Actions: a.acts[:0]}
	a.ascending = false
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.State == Suspending || t.State == Suspended {
			d.ParkedTasks++
			d.Parked += t.Parked
		}
	}
	most := share(s.Capacity, a.cfg.MostBytes) - d.Parked
	d.Room = max(0, min(s.Room, most))
	a.resume(now, s)
	a.expire(now, s)
	return d
}

func (a *Airlock) act(s *Snapshot, i int, step Step, cause Cause, relief quantity.Amount) {
	a.d.Actions = append(a.d.Actions, Action{Task: i, Token: s.Tasks[i].Token, Step: step, Cause: cause, Relief: relief})
}

// late is since when a task's entry stands, if it does.
func late(now quantity.Instant, t *Task) (time.Duration, bool) {
	return now.Sub(t.Since), (t.State == Suspending || t.State == Suspended || t.State == Readdressing) && t.Since != 0
}

// overtime reports whether a task's entry has lasted longer than its timer.
func (a *Airlock) overtime(now quantity.Instant, t *Task) bool {
	stood, stands := late(now, t)
	return stands && stood >= a.cfg.Timer
}

// least is how much memory a task must give for a step against it to be worth taking.
func (a *Airlock) least(s *Snapshot) quantity.Amount { return max(1, share(s.Capacity, a.cfg.Least)) }

// waited reports whether an entry has lasted so long that there is only time for a checkpoint until its timer is over.
func (a *Airlock) waited(stood time.Duration) bool { return stood >= a.cfg.Timer-a.cfg.Yield }

// resume resumes the highest suspended task, where it fits below the severe line: one by one while it is calm, and with it all tasks that
// have kept to their plan and would be asked to yield now although there is room; below the severe line those whose timer is over, since
// ending them is worse. Where one does not fit none below it is resumed: it would survive a task that outranks it.
//
// What is moved out is what it takes to be calm, and may be more than there is between the lines. So where it is calm, and it would be
// asked or ended, the highest goes on though not all of it fits: it takes again what it touches, and if that is too much it is suspended
// again, as often as it may be. A task that would be asked goes on one cool-down before that, since what is moved out ends just below the
// calm line, and one look may find it above. It waits for the one before it to show what it needs; one that would be ended does not.
func (a *Airlock) resume(now quantity.Instant, s *Snapshot) {
	if a.d.Level >= Severe {
		return
	}
	last, used := quantity.Instant(0), a.d.Used
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if last = max(last, t.Resumed); t.State == Resuming {
			used += t.Parked
		}
	}
	a.rank(now, s, true, func(t *Task) bool { return t.State == Suspended })
	calm := a.d.Level == Calm && (last == 0 || now.Sub(last) >= a.cfg.CoolDown)
	for {
		i, ok := a.pop(s)
		if !ok {
			return
		}
		t := &s.Tasks[i]
		stood, _ := late(now, t)
		ends := stood >= a.cfg.Timer
		over := ends || a.d.Level == Calm && a.waited(stood) && !t.Outgrown()
		soon := stood >= a.cfg.Timer-a.cfg.Yield-a.cfg.CoolDown && !t.Outgrown()
		fits, cause := used+t.Parked < a.d.severe, Eased
		if !fits {
			cause = Waited
		}
		if fits && !calm && !over || !fits && !(soon && calm && used == a.d.Used || ends && a.d.Level == Calm) {
			return
		}
		used += t.Parked
		a.act(s, i, Resume, cause, t.Parked)
		if !over {
			calm = false // one at a time
		}
	}
}

// expire asks or ends tasks whose entry has stood too long, except those that this decision resumes. A suspended task that has outgrown
// its plan and would not fit again is asked to yield as soon as memory is calm: it could only wait, in swap that the next storm needs.
func (a *Airlock) expire(now quantity.Instant, s *Snapshot) {
	going, low := len(a.d.Actions), a.lowestToStay(now, s)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		stood, stands := late(now, t)
		if !stands || a.acted(going, i) {
			continue
		}
		switch {
		case stood >= a.cfg.Timer && t.stands() && low != nil && a.cfg.Outranks(now, t, low): // resumeOvertime
		case stood >= a.cfg.Timer:
			a.act(s, i, Reclaim, Overtime, t.Resident)
		case t.State == Readdressing || !t.Yields || a.d.Level >= Emergency:
		case a.waited(stood):
			a.act(s, i, Readdress, Waited, t.Resident)
		case t.State == Suspended && t.Outgrown() && a.d.Level == Calm && s.Capacity > 0 && !a.d.Fits(t.Parked):
			a.act(s, i, Readdress, Cramped, t.Resident)
		}
	}
}

// lowestToStay is the lowest task that has memory, is not about to leave and whose timer is not over; nil if there is none. No task above
// it is ended for its timer.
func (a *Airlock) lowestToStay(now quantity.Instant, s *Snapshot) (low *Task) {
	least := a.least(s)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.State.Leaves() || t.Resident+t.Parked < least || a.overtime(now, t) {
			continue
		}
		if low == nil || a.cfg.Outranks(now, low, t) {
			low = t
		}
	}
	return low
}

// resumeOvertime resumes, at any level, the tasks whose timer is over and that expire spared because a lower one stays. If memory then
// ends, the lower one is ended first.
func (a *Airlock) resumeOvertime(now quantity.Instant, s *Snapshot) {
	done := len(a.d.Actions)
	for i := range s.Tasks {
		if t := &s.Tasks[i]; a.overtime(now, t) && !a.acted(done, i) {
			a.act(s, i, Resume, Overtime, t.Parked)
		}
	}
}

// acted says whether one of the first n actions is of a task.
func (a *Airlock) acted(n, task int) bool {
	for _, x := range a.d.Actions[:n] {
		if x.Task == task {
			return true
		}
	}
	return false
}

// underway is what a task that gives way already has still to give.
func (a *Airlock) underway(t *Task) quantity.Amount {
	switch t.State {
	case Suspending:
		return min(max(0, t.Resident), a.d.Room)
	case Readdressing, Reclaiming, Ending:
		return max(0, t.Resident)
	default:
		return 0
	}
}

// foresee asks those that have outgrown their plan, the lowest first, to leave a checkpoint and yield while they can: where at this growth
// memory would end within the time that takes. Tasks within their plan, or that can't yield, are passed over. slow is the memory of those
// asked above one that was passed over.
func (a *Airlock) foresee(now quantity.Instant, s *Snapshot) (slow quantity.Amount) {
	grown := func(g quantity.Amount) quantity.Amount {
		return quantity.Amount(quantity.MulDiv(int64(max(0, g)), int64(a.cfg.Yield), int64(time.Second)))
	}
	missing := a.d.Used + grown(s.Growth) - s.Capacity - s.Owed
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.State.Leaves() {
			missing -= max(0, t.Resident) + grown(t.Growth)
		}
	}
	if missing <= 0 {
		return 0
	}
	a.lowest(now, s)
	least, passed := a.least(s), false
	for missing > 0 {
		i, ok := a.pop(s)
		if !ok {
			return slow
		}
		t := &s.Tasks[i]
		if !t.gives() {
			continue
		}
		all := max(0, t.Resident) + grown(t.Growth)
		switch {
		case !t.Outgrown() && a.cfg.Outgrown == OutgrownFirst: // those that are first in the order
			return slow
		case all < least:
		case !t.Outgrown() || !t.Yields:
			passed = true
		default:
			missing -= all
			a.act(s, i, Readdress, Foreseen, max(0, t.Resident)+a.growth(t.Growth))
			if passed {
				slow += max(0, t.Resident)
			}
		}
	}
	return slow
}

// foreseen are the last actions, as far as foresee has them.
func (a *Airlock) foreseen() []Action {
	acts := a.d.Actions
	i := len(acts)
	for i > 0 && acts[i-1].Cause == Foreseen {
		i--
	}
	return acts[i:]
}

// gives reports whether a task may be made to give way: nothing was done to it yet, or it goes on again.
func (t *Task) gives() bool { return t.State == Running || t.State == Resuming }

// stands reports whether a task is suspended, or is about to be.
func (t *Task) stands() bool { return t.State == Suspending || t.State == Suspended }

// relieve frees memory down to the calm line: it suspends the lowest tasks or asks them to yield, as few as cover what is missing. Tasks
// whose end would free next to nothing are passed over. So are those that can neither be suspended nor yield: the next above gives way in
// their place, since at the emergency line one of them would lose all its work. slow is the memory of those asked to yield above such a
// one.
func (a *Airlock) relieve(now quantity.Instant, s *Snapshot) (slow quantity.Amount) {
	d := &a.d
	d.Deficit, d.Underway = a.lack(&d.Reading), s.Owed
	for i := range s.Tasks {
		d.Underway += a.underway(&s.Tasks[i])
	}
	asked := a.foreseen()
	for _, x := range asked {
		d.Underway += max(0, s.Tasks[x.Task].Resident)
	}
	if d.Underway >= d.Deficit {
		return 0
	}
	a.lowest(now, s)
	least, room, parked := a.least(s), d.Room, d.ParkedTasks
	for i := range s.Tasks { // those to be suspended take of the room
		if s.Tasks[i].State == Suspending {
			room -= min(room, max(0, s.Tasks[i].Resident))
		}
	}
	for d.Underway+d.Covered < d.Deficit {
		i, ok := a.pop(s)
		if !ok {
			return slow
		}
		if len(asked) > 0 && asked[0].Task == i { // they come in the same order
			asked = asked[1:]
			continue
		}
		t := &s.Tasks[i]
		all := max(0, t.Resident) + a.growth(t.Growth)
		if !t.gives() || all < least {
			continue
		}
		moves := min(max(0, t.Resident), room)
		switch stands := moves + a.growth(t.Growth); {
		case stands >= least && !t.Bound && t.Entries < a.cfg.Entries && parked < a.cfg.MostTasks:
			room -= moves
			parked++
			d.Covered += stands
			a.act(s, i, Suspend, Deficit, stands)
		case t.Yields:
			d.Covered += all
			a.act(s, i, Readdress, Deficit, all)
			if d.Blocked >= 0 {
				slow += all
			}
		case d.Blocked < 0:
			d.Blocked = i
		}
	}
	return slow
}

// moveOut takes at the emergency line the steps of the severe one, if they free enough and swap has room for all that is above the line, so
// that nothing is ended. Otherwise it does nothing and returns false. What foresee and relieve call slow does not count here: a checkpoint
// takes too long, and the lowest that can't give way is ended instead.
func (a *Airlock) moveOut(now quantity.Instant, s *Snapshot) bool {
	d := &a.d
	above := d.Used + a.growth(s.Growth) - share(s.Capacity, a.cfg.Emergency)
	if above > d.Room {
		return false
	}
	before := *d
	d.Level = Severe
	slow := a.foresee(now, s)
	if slow += a.relieve(now, s); d.Underway+d.Covered-slow < above {
		*d = before
		return false
	}
	return true
}

// rescue ends the lowest at once, down to the severe line.
func (a *Airlock) rescue(now quantity.Instant, s *Snapshot) {
	d := &a.d
	d.Deficit, d.Underway = a.lack(&d.Reading), s.Owed
	going := len(d.Actions)
	for _, x := range d.Actions { // whose timer is over
		d.Underway += max(0, x.Relief)
	}
	for i := range s.Tasks {
		if s.Tasks[i].State == Reclaiming {
			d.Underway += max(0, s.Tasks[i].Resident)
		}
	}
	if d.Underway >= d.Deficit {
		return
	}
	a.lowest(now, s)
	least := a.least(s)
	for d.Underway+d.Covered < d.Deficit {
		i, ok := a.pop(s)
		if !ok {
			return
		}
		if t := &s.Tasks[i]; t.Resident >= least && !a.acted(going, i) {
			d.Covered += t.Resident
			a.act(s, i, Reclaim, Brink, t.Resident)
		}
	}
}
