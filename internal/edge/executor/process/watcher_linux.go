package process

import (
	"path/filepath"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// watcher is the executor's side of the machine's watcher (docs/adr/0047-watcher.md): it keeps one alive, tells it which subjobs there
// are, and passes its readings to the nodes in place of the executor's own sensors'.
type watcher struct {
	// path is where supervisors find it; empty: the memory is not watched. keeper is nil where there is none.
	path   string
	keeper *watch.Keeper
	// survival is the executor's.
	survival survival.Survival
	// before is the board as this daemon found it, of watchers of earlier daemons.
	before watch.Board
	// board is the last one that was read; like rows it belongs to the sensing goroutine.
	board watch.Board
	rows  []watch.Row
	// news wakes the sensing goroutine while a watcher lives: its board has changed, or there are changes to tell it.
	news chan struct{}
	// found: Find has returned, so all running subjobs are known.
	found atomic.Bool
	// last describes its last act, for people; nil: none since this daemon began.
	last atomic.Pointer[string]
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

// lives reports whether there is a watcher.
func (w *watcher) lives() bool { return w.keeper != nil && w.keeper.Lives() }

// wake has the sensing goroutine look at once: a subjob has changed, or the watcher has acted.
func (w *watcher) wake() {
	if w.news == nil {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // a look is due anyway
	}
	w.survival.Wake()
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
