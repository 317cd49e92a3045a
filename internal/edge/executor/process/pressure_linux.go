package process

import (
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// The time between readings of the machine's memory: with plenty free, near the calm line, and over it.
const (
	atRest = 250 * time.Millisecond
	// heard is the same while the machine's watcher reads the memory and signals changes: a daemon then reads the watcher's board.
	heard    = time.Second
	watchful = 50 * time.Millisecond
	pressed  = 20 * time.Millisecond
	// coming is how far ahead growth counts as present.
	coming = 4 * time.Second
)

// The share of time that readings may take: with plenty of memory, and when it is short.
const restShare, pressedShare = 100, 5

const (
	// A report of nothing urgent is made once a second at most, and only if the used share has changed by so many parts per thousand.
	quiet        = time.Second
	quietPermill = 20
	// stallsFrom is the used share of the memory, in parts per thousand, from which stalls for memory count: with less in use tasks stall
	// because of a limit of their own.
	stallsFrom = 750
)

func (n *sensor) closed() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// watched: the reading is the machine's watcher's.
func (p *pressure) watched() bool { return p.life != 0 }

// monotonic is a clock that never goes back.
func monotonic() time.Duration { return shim.Boottime() }

// sense reads the machine's memory for as long as the executor is open, and reports it when it is worth a report.
func (n *sensor) sense() {
	p := &n.pressure
	for !n.closed() {
		now := monotonic()
		watched := n.follow()
		var err error
		if !watched {
			err = n.survival.Sense(now, &p.memory)
		}
		if err != nil {
			if !p.failed {
				n.log.Error("the machine's memory can't be looked at; trying again", "err", err)
			}
			p.failed = true
			n.survival.Await(quiet)
			continue
		}
		p.failed = false
		p.room.Store(int64(p.memory.Room))
		near := n.read()
		if !watched && (near || p.reading.Share >= stallsFrom/2) {
			n.measure(now)
		}
		if n.worthALook(now) {
			n.say()
		}
		n.await(n.pause(near, monotonic()-now))
	}
}

// read takes a reading, and reports whether the memory is near the calm line.
func (n *sensor) read() (near bool) {
	p, m := &n.pressure, &n.pressure.memory
	s := airlock.Snapshot{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Stall: n.stall()}
	p.reading = n.airlock.Read(&s)
	if p.reading.Level > airlock.Calm {
		return true
	}
	s.Used += max(0, m.Growth) * quantity.Amount(coming/time.Second)
	soon := n.airlock.Read(&s)
	return soon.Level > airlock.Calm
}

// stall is the share of time in which all of the machine's tasks were stalled for memory, where that is short.
func (n *sensor) stall() int64 {
	m := &n.pressure.memory
	if quantity.MulDiv(int64(m.Used), 1000, int64(max(1, m.Capacity))) < stallsFrom {
		return 0
	}
	return m.Full
}

// measure reads the memory of subjobs. One that is just being suspended or resumed keeps its last value.
func (n *sensor) measure(now time.Duration) {
	for _, r := range n.all() {
		s := &r.still
		if !s.acting.TryLock() {
			continue
		}
		if s.hold != nil {
			_ = s.hold.Measure(now, &s.use)
		}
		s.acting.Unlock()
	}
}

// worthALook reports whether a report is due now.
func (n *sensor) worthALook(now time.Duration) bool {
	p := &n.pressure
	if p.reading.Level > airlock.Calm || p.saidAt == 0 || p.news || n.anyStill() {
		return true
	}
	if now-p.saidAt >= n.airlock.Timer/3 { // the node takes a report for stale after a whole Timer
		return true
	}
	changed := p.reading.Share - p.said
	return now-p.saidAt >= quiet && (changed >= quietPermill || changed <= -quietPermill)
}

// anyStill: a subjob is suspended, or is to be.
func (n *sensor) anyStill() bool {
	return slices.ContainsFunc(n.all(), func(r *run) bool {
		wanted, open := r.stands()
		return (wanted || r.watched()) && open
	})
}

// say reports the memory, and how much of it every visible subjob has.
func (n *sensor) say() {
	p, m := &n.pressure, &n.pressure.memory
	p.said, p.saidAt, p.news = p.reading.Share, monotonic(), false
	strain := &protocol.Strain{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Room: m.Room, Stall: n.stall(), Watch: p.life}
	for _, r := range n.all() {
		r.mu.Lock()
		seen := r.started != 0 && r.result == nil
		r.mu.Unlock()
		if !seen {
			continue
		}
		if p.life != 0 {
			strain.Uses = append(strain.Uses, n.watcher.use(r.token))
			continue
		}
		use := protocol.Use{Token: r.token}
		if r.still.acting.TryLock() {
			use.Resident, use.Parked, use.Growth = r.still.use.Resident, r.still.use.Parked, r.still.use.Growth
			r.still.said = r.still.use
			r.still.acting.Unlock()
		} else {
			use.Resident, use.Parked, use.Growth = r.still.said.Resident, r.still.said.Parked, r.still.said.Growth
		}
		strain.Uses = append(strain.Uses, use)
	}
	slices.SortFunc(strain.Uses, func(a, b protocol.Use) int { return a.Token.Compare(b.Token) })
	n.post(protocol.Message{Kind: protocol.Pressure, Body: strain})
}

// pause returns the time until the next reading, after one that took so long.
func (n *sensor) pause(near bool, took time.Duration) time.Duration {
	switch {
	case n.pressure.reading.Level >= airlock.Severe:
		return max(pressed, pressedShare*took)
	case near || n.anyStill():
		return max(watchful, pressedShare*took)
	case n.pressure.watched():
		return heard
	default:
		return max(atRest, restShare*took)
	}
}

// keep starts a watcher and keeps one alive, if one is wanted; base is the control group of subjobs. Without one the node decides.
func (w *watcher) keep(o *Options, base string) {
	w.path = watch.Path(o.DataDir)
	if !o.Watch {
		return
	}
	w.survival, w.news = o.Survival, make(chan struct{}, 1)
	k, err := watch.Keep(watch.Options{
		Path: w.path, Program: o.ShimPath, Kind: o.Survival.Capability().Kind, Base: base, Config: o.Airlock, Now: o.now, Changed: w.wake,
		Log: o.Logger,
	})
	if err != nil {
		if errkind.Of(err) == errkind.Conflict { // supervisors would take another's watcher for theirs
			w.path = ""
		}
		o.Logger.Error("the machine's memory has no watcher of its own: the daemon looks after it as long as it lives", "err", err)
		return
	}
	w.keeper, w.before = k, k.Before()
}

// await waits for patience at most, or until there is news. While a watcher lives it handles the kernel's triggers.
func (n *sensor) await(patience time.Duration) {
	if !n.pressure.watched() {
		n.survival.Await(patience)
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-n.watcher.news:
	case <-timer.C:
	case <-n.done:
	}
}

func (w *watcher) close() error {
	if w.keeper == nil {
		return nil
	}
	return w.keeper.Close()
}

// Watcher returns the pid of the machine's watcher, 0 where none lives, and its last act since this daemon began, for people; empty: none.
func (e *Executor) Watcher() (pid int, last string) {
	w := &e.sensor.watcher
	if w.keeper == nil {
		return 0, ""
	}
	if said := w.last.Load(); said != nil {
		last = *said
	}
	return w.keeper.PID(), last
}

// follow tells the watcher which subjobs there are, and reads its board; false: no watcher lives that can be relied upon.
func (n *sensor) follow() bool {
	w := &n.watcher
	if w.keeper == nil {
		return false
	}
	all := n.all()
	w.rows = w.rows[:0]
	for _, r := range all {
		if row, ok := r.row(); ok {
			w.rows = append(w.rows, row)
		}
	}
	if w.found.Load() { // until then what an earlier daemon has told it is more accurate
		w.keeper.Publish(w.rows)
	}
	n.tellActs()
	lives := w.keeper.Board(&w.board)
	if !lives {
		w.board = watch.Board{Stands: w.board.Stands[:0]}
	}
	p, b := &n.pressure, &w.board
	if lives {
		p.memory = survival.Memory{Capacity: b.Capacity, Used: b.Used, Growth: b.Growth, Room: b.Room, Full: b.Stall}
	}
	for _, r := range all {
		stand, _ := b.Of(r.token)
		r.mirror(stand != nil && standsStill(stand.State))
	}
	p.news = p.news || p.life != b.Life
	p.life = b.Life
	return lives
}

// tellActs logs what the watcher did, also while no daemon was running.
func (n *sensor) tellActs() {
	w := &n.watcher
	lost := w.keeper.Acts(func(a *watch.Act) {
		said := a.String()
		w.last.Store(&said)
		n.log.Warn("the machine is short of memory", "watcher", said, "at", a.At.Time())
	})
	if lost > 0 {
		n.log.Warn("not all is known that the watcher of the machine's memory did", "lost", lost)
	}
}

// row returns the watcher's row for a subjob; false: it does not run.
func (r *run) row() (row watch.Row, ok bool) {
	now, end := r.e.o.now(), r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	s, l := &r.still, &r.lease
	note := &s.note
	if note.At == 0 || r.result != nil {
		return row, false
	}
	row = watch.Row{
		Token: r.token, Start: note.At, Planned: l.Planned, Priority: l.Rank.Priority, Value: l.Rank.Value, Class: ranked[l.Rank.Class],
		Bound: l.Members > 0 || s.restless, Yields: l.Rank.Yields, Stopping: s.leaving || now >= end.Add(-l.Grace), Init: note.Init,
		InitStarted: note.InitStarted,
	}
	if note.Cgroup != "" && filepath.Dir(note.Cgroup) == r.e.iso.Cgroup {
		row.Group = filepath.Base(note.Cgroup)
	}
	return row, true
}

var ranked = [protocol.Classes]airlock.Class{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Fleeting: airlock.Fleeting, protocol.Lasting: airlock.Lasting, protocol.Collective: airlock.Collective,
}

// standsStill: the watcher has suspended it.
func standsStill(s airlock.State) bool { return s == airlock.Suspending || s == airlock.Suspended }

// mirror has its supervisor, and by that its program, know what the watcher does with it. The disk is waited for by nobody else.
func (r *run) mirror(stands bool) {
	r.mu.Lock()
	changed := r.still.stands != stands
	r.still.stands = stands
	r.mu.Unlock()
	if !changed {
		return
	}
	r.e.sensor.pressure.news = true
	r.e.tasks.Go(func() {
		r.still.telling.Lock()
		defer r.still.telling.Unlock()
		r.mu.Lock()
		stands := r.still.stands
		if stands && r.still.why == "" {
			r.still.why = shortOfMemory
		}
		r.mu.Unlock()
		r.tell(stands, true)
	})
}

// shortOfMemory is why a subjob stands still, for its program.
const shortOfMemory = "the node is short of memory"

// use is what the watcher knows of a subjob, for its node.
func (w *watcher) use(t job.Token) protocol.Use {
	u := protocol.Use{Token: t}
	s, ok := w.board.Of(t)
	if !ok {
		return u
	}
	u.Resident, u.Parked, u.Growth = s.Resident, s.Parked, s.Growth
	u.Stand = protocol.Stand{Since: s.Since, Resumed: s.Resumed, Times: s.Entries}
	switch s.State {
	case airlock.Suspending, airlock.Suspended:
		u.Stand.State = protocol.StandsStill
	case airlock.Readdressing:
		u.Stand.State = protocol.IsToYield
	case airlock.Reclaiming:
		u.Stand.State = protocol.IsEnded
	default:
	}
	return u
}

// reclaimed is why the machine's watcher had ended it, as a supervisor asks that has not died itself; empty: it had not.
func (r *run) reclaimed() string {
	w := watch.Witness{Path: r.lease.Watch}
	stand, ok := w.Stand(r.token)
	if !ok {
		stand, ok = r.e.sensor.watcher.stoodAs(r.token)
	}
	if ok && stand.State == airlock.Reclaiming {
		return shortOfMemory
	}
	return ""
}

// stoodAs is what the watchers of earlier daemons had last done with a subjob.
func (w *watcher) stoodAs(t job.Token) (stand watch.Stand, ok bool) {
	if s, known := w.before.Of(t); known {
		return *s, true
	}
	return stand, false
}

// stoodBefore finds out of a subjob of an earlier daemon whether it stood still under that one, or since: its node knows nothing of it.
func (r *run) stoodBefore() {
	stand, ok := r.e.sensor.watcher.stoodAs(r.token)
	r.still.before = r.control != nil && r.control.Stood > 0 || ok && stand.Entries > 0
}

// excused is the result of a subjob that stood still under an earlier daemon, as a node has it of one that stood still under its own: that
// it came no further is not its own failure.
func (r *run) excused(res job.Result) job.Result {
	if r.still.before && (res.Outcome == job.Yielded || res.Outcome == job.DeadlineKilled) {
		res.Outcome = job.Stopped
		if res.Detail == "" {
			res.Detail = shortOfMemory
		}
	}
	return res
}
