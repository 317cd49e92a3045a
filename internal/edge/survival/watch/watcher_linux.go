package watch

import (
	"time"

	"golang.org/x/sys/unix"
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const (
	// absent is the silence after which the daemon counts as dead: nobody is there to ask a subjob to yield.
	absent = 2 * time.Second
	// rest is the time between two looks at most, where much is free, alert where it is short or may be soon. In between it looks again
	// before what is free to the severe line could be filled at fill a second.
	rest, alert = 500 * time.Millisecond, 10 * time.Millisecond
	fill        = quantity.Amount(8 << 30)
	// measured is how often what the subjobs have is measured where all is well, told how often the board is written then.
	measured, told = time.Second, time.Second
	// slumber is the shortest sleep of the machine that counts: less may lie between the readings of two clocks.
	slumber = time.Second
	// ahead is how far the growth of the last two seconds is looked ahead to be alert in time.
	ahead = 10
	// A moment is what one move of memory is to take: between two of them everything else is looked at.
	moment = 5 * time.Millisecond
	// leastMove and mostMove bound one move.
	leastMove, mostMove = quantity.Amount(256 << 10), quantity.Amount(64 << 20)
	// meal is how long memory is moved out of a task before it counts as suspended: until then what it has counts as under way.
	// misses is how often nothing may be moved until there is taken to be nothing more: what is read from files comes first, and does not
	// count.
	meal, misses = 10 * time.Second, 3
)

// look senses, decides and acts, once. boot is CLOCK_BOOTTIME, awake CLOCK_MONOTONIC. It returns how long nothing is due.
func (w *watcher) look(boot, awake time.Duration) (patience time.Duration) {
	w.present = w.heard(awake)
	w.wakeUp(boot - awake)
	w.read()
	if err := w.sense.Sense(boot, &w.memory); err != nil {
		w.memory = survival.Memory{} // nothing is known: no capacity, no decision
	}
	now := w.now(boot)
	w.r.head.store(headPulse, uint64(awake))
	if w.lock == nil { // it has no table yet
		return rest
	}
	w.gauge(boot)
	w.carryOut(now, w.decide(now))
	moved := w.moveOut()
	if w.changed || w.level > airlock.Calm || boot-w.last.told >= told {
		w.tell(now, boot)
	}
	switch {
	case moved:
		return 0
	case w.near():
		return alert
	default:
		free := w.memory.Capacity/1000*quantity.Amount(w.lock.Config().Severe) - w.memory.Used
		return min(rest, max(alert, time.Duration(quantity.MulDiv(int64(max(0, free)), int64(time.Second), int64(fill)))))
	}
}

// heard reports whether the daemon is alive, by its heartbeat.
func (w *watcher) heard(awake time.Duration) bool {
	beat := time.Duration(w.r.head.load(headBeat))
	return beat != 0 && beat <= awake && awake-beat < absent
}

// wakeUp has entries last longer by what the machine has slept since the last look: nobody could do what it was asked to. slept is all of
// that since the machine was started.
func (w *watcher) wakeUp(slept time.Duration) {
	more := slept - w.last.slept
	w.last.slept = slept
	if more < slumber {
		return
	}
	for i := range w.tasks {
		if t := &w.tasks[i]; t.since != 0 {
			t.since, w.changed = t.since.Add(more), true
		}
	}
}

// now is the node's clock.
func (w *watcher) now(boot time.Duration) quantity.Instant {
	return w.table.Wall.Add(boot - w.table.Boot)
}

// near: it is worth looking often.
func (w *watcher) near() bool {
	if w.level > airlock.Calm {
		return true
	}
	for i := range w.tasks {
		if t := &w.tasks[i]; t.state != airlock.Running && !t.out {
			return true
		}
	}
	m := &w.memory
	return w.lock != nil && m.Growth > 0 && m.Used+min(m.Growth, m.Capacity)*ahead > m.Capacity/1000*quantity.Amount(w.lock.Config().Severe)
}

// gauge measures the subjobs' memory, and finds which are suspended or running by now. Where all is well that is not done at every look.
func (w *watcher) gauge(boot time.Duration) {
	if boot-w.last.measured < measured && !w.near() && !w.pressed() {
		return
	}
	w.last.measured = boot
	for i := range w.tasks {
		t := &w.tasks[i]
		if t.out {
			continue
		}
		if err := t.hold.Measure(boot, &w.use); err != nil {
			w.use = survival.Use{}
		}
		before := t.resident
		t.resident, t.parked, t.growth = max(0, w.use.Resident), max(0, w.use.Parked), w.use.Growth
		if t.state == airlock.Reclaiming {
			w.freed.let += max(0, before-t.resident)
		}
		switch t.state {
		case airlock.Suspending:
			if !t.still {
				still, err := t.hold.Settle(0)
				t.still = err == nil && still
			} else if w.strayed(t) {
				w.goesOn(t, boot)
				break
			}
			// As long as memory comes back from it, that is counted on, and nobody else gives way for it; not for long, so that it may go
			// on.
			if t.still && (t.full || w.now(boot).Sub(t.since) >= meal || t.resident == 0 || w.can.Level < survival.Full ||
				w.memory.Room <= 0) {
				w.turn(t, airlock.Suspended)
			}
		case airlock.Suspended:
			if w.strayed(t) {
				w.goesOn(t, boot)
			}
		case airlock.Resuming:
			if still, err := t.hold.Still(); err == nil && !still {
				w.turn(t, airlock.Running)
			}
		default:
		}
	}
}

// strayed: another has resumed it: its supervisor, when its lease ends or after it saw no watcher, or a person.
func (w *watcher) strayed(t *task) bool {
	still, err := t.hold.Still()
	return err == nil && !still
}

// goesOn ends an entry that another has ended. Where memory is still short the task is decided on anew, as often as a task may be
// suspended. It is resumed: only a part of it may be running, or it may have looked so for a moment, as a frozen group does while a process
// of it is killed.
func (w *watcher) goesOn(t *task, boot time.Duration) {
	_ = t.hold.Resume()
	t.since, t.resumed = 0, w.now(boot)
	w.turn(t, airlock.Running)
}

// pressed: by the machine's numbers alone memory is short, or may be soon.
func (w *watcher) pressed() bool {
	s := airlock.Snapshot{Capacity: w.memory.Capacity, Used: w.memory.Used, Growth: w.memory.Growth, Stall: w.stall()}
	r := w.lock.Config().Read(&s)
	return r.Level > airlock.Calm
}

// stall is the share of time in which all tasks were stalled for want of memory, where that is short: with less in use they do for a limit
// of their own.
func (w *watcher) stall() int64 {
	if m := &w.memory; m.Used < m.Capacity/4*3 {
		return 0
	}
	return w.memory.Full
}

// decide has core/airlock decide.
func (w *watcher) decide(now quantity.Instant) *airlock.Decision {
	s, m := &w.snapshot, &w.memory
	s.Capacity, s.Used, s.Growth, s.Room, s.Stall, s.Tasks = m.Capacity, m.Used, m.Growth, m.Room, w.stall(), s.Tasks[:0]
	if w.can.Level < survival.Full {
		s.Room = 0
	}
	s.Owed, w.freed.let = w.freed.owed.Look(now, m.Used, w.freed.let), 0
	for i := range w.tasks {
		t := &w.tasks[i]
		if !w.present && t.state == airlock.Readdressing && !t.row.Stopping { // nobody has asked it, and nobody will
			t.since = 0
			w.turn(t, airlock.Running)
		}
		k := airlock.Task{
			Token: t.row.Token, Start: t.row.Start, Planned: t.row.Planned, Since: t.since, Resumed: t.resumed, Priority: t.row.Priority,
			Value: t.row.Value, Class: t.row.Class,
			State: t.state, Entries: t.entries, Bound: t.row.Bound || t.rigid || w.can.Level == survival.Observe, Yields: t.row.Yields &&
				w.present,
		}
		if !t.out {
			k.Resident, k.Parked, k.Growth = t.resident, t.parked, t.growth
		}
		s.Tasks = append(s.Tasks, k)
	}
	d := w.lock.Decide(now, s)
	if d.Level != w.level {
		w.level, w.changed = d.Level, true
	}
	return d
}

// carryOut does what was decided: in the ring before it is done, and where that can't be taken back on the board too.
func (w *watcher) carryOut(now quantity.Instant, d *airlock.Decision) {
	if len(d.Actions) == 0 {
		return
	}
	ends := false
	for i := range d.Actions {
		a := &d.Actions[i]
		act := Act{Life: w.id, At: now, Token: a.Token, Step: a.Step, Cause: a.Cause, Level: d.Level, Relief: a.Relief, Used: d.Used}
		w.r.ring.add(&act)
		t := &w.tasks[a.Task]
		t.cause = a.Cause
		switch a.Step {
		case airlock.Suspend:
			w.suspend(t, now)
		case airlock.Resume:
			w.resume(t, now)
		case airlock.Readdress:
			w.release(t)
			if t.since == 0 {
				t.since = now
			}
			w.turn(t, airlock.Readdressing)
		case airlock.Reclaim:
			w.turn(t, airlock.Reclaiming)
			ends = true
		}
	}
	if !ends {
		return
	}
	w.tell(now, w.last.told) // the board has it for anyone that asks why it was ended
	for i := range d.Actions {
		if a := &d.Actions[i]; a.Step == airlock.Reclaim {
			_ = w.tasks[a.Task].life.end() // what does not end is decided on again
		}
	}
}

func (w *watcher) suspend(t *task, now quantity.Instant) {
	if err := t.hold.Suspend(); err != nil {
		// It can't be, so nothing was done to it: the next decision knows. What is gone has no memory, and is passed over.
		_ = t.hold.Resume()
		t.rigid = true
		return
	}
	t.since, t.still, t.full, t.missed = now, false, false, 0
	t.entries = min(t.entries, 254) + 1
	w.turn(t, airlock.Suspending)
}

func (w *watcher) resume(t *task, now quantity.Instant) {
	w.release(t)
	t.since, t.resumed = 0, now
	w.turn(t, airlock.Resuming)
}

// moveOut moves a little of a suspended task out, and says whether there is more to move: one task in turn, so that no look waits long.
// Once it is calm nothing more is: what is out has to come back.
func (w *watcher) moveOut() (more bool) {
	if w.can.Level < survival.Full || w.memory.Room <= 0 || w.level == airlock.Calm {
		return false
	}
	for range w.tasks {
		w.moving.next = (w.moving.next + 1) % len(w.tasks)
		t := &w.tasks[w.moving.next]
		if t.state != airlock.Suspending && t.state != airlock.Suspended || !t.still || t.full || t.out || t.resident <= 0 {
			continue
		}
		if w.bite(t) {
			return true
		}
	}
	return false
}

// bite moves a little of a task out, and says whether there may be more. After one that brought nothing the next is twice as large: what
// it has in files comes first with many kernels, and does not count as brought.
func (w *watcher) bite(t *task) (more bool) {
	most := min(mostMove, w.moving.size<<t.missed)
	begun := boottime()
	got, err := t.hold.Reclaim(min(most, t.resident))
	took := boottime() - begun
	if err != nil || got <= 0 {
		t.missed++
		t.full = err != nil || t.missed >= misses && most == mostMove
		return !t.full
	}
	t.missed = 0
	switch {
	case took > 2*moment:
		w.moving.size = max(leastMove, w.moving.size/2)
	case took < moment/2:
		w.moving.size = min(mostMove, w.moving.size*2)
	}
	t.resident -= min(t.resident, got)
	t.parked += got
	return true
}

// tell writes the board.
func (w *watcher) tell(now quantity.Instant, boot time.Duration) {
	b, m := &w.board, &w.memory
	*b = Board{Life: w.id, At: now, Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Room: w.snapshot.Room, Stall: w.stall(),
		Level: w.level, Stands: b.Stands[:0]}
	for i := range w.tasks {
		t := &w.tasks[i]
		b.Stands = append(b.Stands, Stand{
			Token: t.row.Token, Since: t.since, Resumed: t.resumed, Resident: t.resident, Parked: t.parked, Growth: t.growth,
			State: t.state, Entries: t.entries, Cause: t.cause,
		})
	}
	w.r.board.write(b.encode(w.room[:0]))
	if w.changed {
		w.ring()
	}
	w.last.told, w.changed = boot, false
}

// ring signals that the board has changed. A daemon that does not listen, or is dead, is skipped.
func (w *watcher) ring() {
	if w.bell >= 0 {
		_, _ = unix.Write(w.bell, one[:])
	}
}

// deserted: the daemon is dead, and nothing of its table is left.
func (w *watcher) deserted() bool {
	for i := range w.tasks {
		t := &w.tasks[i]
		if t.out = t.out || t.life.gone(); !t.out {
			return false
		}
	}
	return true
}

// matters reports whether the region has something for the next daemon: an act that was not reported, or that something was done to a
// subjob.
func (w *watcher) matters() bool {
	if w.r.ring.next.load(0) != w.r.head.load(headRead) {
		return true
	}
	for i := range w.tasks {
		if t := &w.tasks[i]; t.entries > 0 || t.state != airlock.Running && t.state != airlock.Ending {
			return true
		}
	}
	return false
}

var one = [1]byte{'.'} //nolint:gochecknoglobals // read alone
