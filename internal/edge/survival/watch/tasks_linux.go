package watch

import (
	"time"

	"golang.org/x/sys/unix"
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

// life is a process that can be ended: the init of a subjob, with which all of it goes.
type life interface {
	end() error
	gone() bool
	close()
}

// watcher decides and acts. It allocates nothing but where the table has changed. It is used by one goroutine.
type watcher struct {
	r     *region
	sense survival.Survival
	// find finds the process that a row names.
	find func(*Row) (life, error)
	// thaw resumes a subjob of an earlier life whose watcher was of another kind; nil: it was of the same.
	thaw func(row *Row, group string)
	id   uint64
	// can is what can be done here.
	can survival.Capability

	table Table
	// number of the table that was taken in; room for one, and the texts that are in use.
	number uint64
	room   []uint64
	texts  map[string]string
	lock   *airlock.Airlock

	tasks, spare []task
	snapshot     airlock.Snapshot
	memory       survival.Memory
	use          survival.Use
	board        Board
	// before is the board that an earlier life has left, until the first table.
	before *Board
	// level at the last look; present: the daemon is there.
	level   airlock.Level
	present bool
	freed   freed
	moving  moving
	last    last
	// changed: the board is to be written, and the daemon to be woken by its bell; -1: there is none.
	changed bool
	bell    int
}

// freed is the memory of subjobs that were ended.
type freed struct {
	// let is what they have freed since the last look, and owed what of that the machine does not show yet.
	let  quantity.Amount
	owed airlock.Owed
}

// moving is the memory that is moved out of subjobs that are suspended.
type moving struct {
	size quantity.Amount // at once
	next int             // whose turn it is
}

// last is when the subjobs were last measured, when the board was last written, and how long the machine had slept by the last look.
type last struct{ measured, told, slept time.Duration }

// task is one subjob that is watched.
type task struct {
	row  Row
	hold survival.Hold
	life life
	// What airlock.Task has of it.
	since, resumed           quantity.Instant
	resident, parked, growth quantity.Amount
	state                    airlock.State
	entries                  uint8
	cause                    airlock.Cause
	// rigid: it could not be suspended. out: it is gone. still: it is suspended, and what it has is being moved out, which full
	// says can go no further.
	rigid, out, still, full bool
	// missed is how many bites in a row brought nothing.
	missed uint8
}

// newWatcher begins a life. Nothing that the table names is suspended once its first look is over.
func newWatcher(r *region, sense survival.Survival, find func(*Row) (life, error), id uint64) *watcher {
	w := &watcher{
		r: r, sense: sense, find: find, id: id, can: sense.Capability(), room: make([]uint64, 0, tableWords), texts: map[string]string{},
		moving: moving{size: 1 << 20}, bell: -1,
		tasks: make([]task, 0, airlock.MaxTasks), spare: make([]task, 0, airlock.MaxTasks),
		snapshot: airlock.Snapshot{Tasks: make([]airlock.Task, 0, airlock.MaxTasks)},
	}
	w.table.Rows, w.board.Stands = make([]Row, 0, airlock.MaxTasks), make([]Stand, 0, airlock.MaxTasks)
	if words, _, ok := r.board.read(w.room[:cap(w.room)]); ok {
		var b Board
		if b.decode(words) {
			w.before = &b
		}
	}
	return w
}

func (w *watcher) turn(t *task, s airlock.State) {
	if t.state != s {
		t.state, w.changed = s, true
	}
}

// release resumes a task that may be suspended.
func (w *watcher) release(t *task) {
	switch t.state {
	case airlock.Suspending, airlock.Suspended, airlock.Resuming:
		_ = t.hold.Resume() // as long as it is frozen it is Resuming, and told again
	default:
	}
}

// read takes the table in, if there is a new one. One that is torn or makes no sense is left alone: the one before holds.
func (w *watcher) read() {
	if w.r.table.last() == w.number {
		return
	}
	words, n, ok := w.r.table.read(w.room[:cap(w.room)])
	if !ok {
		return
	}
	before := w.table.Config
	rows := w.table.Rows
	t := Table{Rows: rows[:0]}
	if !t.decode(words, w.texts) {
		w.number = n // and the next one may be better
		w.table.Rows = rows[:0]
		return
	}
	w.number, w.table = n, t
	if w.lock == nil || t.Config != before {
		w.lock = airlock.New(t.Config)
	}
	w.match()
	clear(w.texts)
	w.texts[t.Base] = t.Base
	for i := range w.table.Rows {
		g := w.table.Rows[i].Group
		w.texts[g] = g
	}
}

// match makes the tasks those of the table. A suspended task that has left it is resumed: nobody would do so later.
func (w *watcher) match() {
	old, next := w.tasks, w.spare[:0]
	for i := range w.table.Rows {
		row := &w.table.Rows[i]
		for len(old) > 0 && old[0].row.Token.Compare(row.Token) < 0 {
			w.drop(&old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].row.Token == row.Token {
			t := &old[0]
			old = old[1:]
			if t.row.Init == row.Init && t.row.InitStarted == row.InitStarted && t.row.Group == row.Group {
				w.hear(t, row)
				next = append(next, *t)
				continue
			}
			w.drop(t)
		}
		if t, ok := w.take(row); ok {
			next = append(next, t)
		}
	}
	for i := range old {
		w.drop(&old[i])
	}
	w.spare = w.tasks[:0]
	w.tasks, w.changed, w.before, w.thaw = next, true, nil, nil
}

// hear records the changes of a task.
func (w *watcher) hear(t *task, row *Row) {
	t.row = *row
	switch {
	case t.state == airlock.Reclaiming || t.state == airlock.Readdressing:
	case row.Stopping:
		w.release(t) // it is to end in order, and its entry with its timer is over
		t.since = 0
		w.turn(t, airlock.Ending)
	case t.state == airlock.Ending: // its lease was extended
		w.turn(t, airlock.Running)
	}
}

// take makes a task of a row. It is resumed, whoever suspended it before: a life begins so. Only one that was being ended is ended, since
// that may not have happened.
func (w *watcher) take(row *Row) (t task, ok bool) {
	s := survival.Subjob{Token: row.Token, Init: row.Init, InitStarted: row.InitStarted}
	if row.Group != "" {
		s.Group = w.table.Base + "/" + row.Group
	}
	hold, err := w.sense.Take(s)
	if err != nil {
		return t, false
	}
	l, err := w.find(row)
	if err != nil {
		_ = hold.Close()
		return t, false
	}
	_ = hold.Resume()
	if w.thaw != nil {
		w.thaw(row, s.Group)
	}
	t = task{row: *row, hold: hold, life: l}
	if w.before != nil {
		if stand, known := w.before.Of(row.Token); known {
			t.entries, t.resumed = stand.Entries, stand.Resumed
			if stand.State == airlock.Reclaiming {
				t.state, t.cause = airlock.Reclaiming, stand.Cause
				_ = l.end()
			}
		}
	}
	if row.Stopping && t.state == airlock.Running {
		t.state = airlock.Ending
	}
	return t, true
}

// drop forgets a task. An ended one has no memory any more, whether or not it was looked at since.
func (w *watcher) drop(t *task) {
	if t.state == airlock.Reclaiming {
		w.freed.let += t.resident
	}
	w.release(t)
	_ = t.hold.Close()
	t.life.close()
	*t = task{}
}

// close ends a life in order: everything is resumed.
func (w *watcher) close() {
	for i := range w.tasks {
		t := &w.tasks[i]
		w.release(t)
		if t.state != airlock.Reclaiming {
			t.state, t.since = airlock.Running, 0
		}
	}
	if w.lock != nil {
		w.tell(w.board.At, w.last.told)
	}
	for i := range w.tasks {
		w.drop(&w.tasks[i])
	}
	w.tasks = w.tasks[:0]
}

// boottime is CLOCK_BOOTTIME: it never goes back, and is the same in every process. It goes on while the machine sleeps.
func boottime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

// waketime is CLOCK_MONOTONIC: boot time that stops while the machine sleeps, as every process does that must show that it is alive.
func waketime() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// clocks are boottime and waketime.
func clocks() (boot, awake time.Duration) {
	awake = waketime()
	return boottime(), awake
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts)
	return time.Duration(ts.Nano())
}
