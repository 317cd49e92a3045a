package watch

import (
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/edge/survival"
)

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

// match has the tasks be those of the table. What has left it goes on, if it stood still: nobody would think of it any more.
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

// hear takes in what is new of a task.
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

// take makes a task of a row. Whoever had it stand still before, it goes on: a life begins so. Only what was being ended is ended, since
// that may not have come to pass.
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

// drop lets go of a task. One that has ended has memory no more, whether or not it was looked at since.
func (w *watcher) drop(t *task) {
	if t.state == airlock.Reclaiming {
		w.freed.let += t.resident
	}
	w.release(t)
	_ = t.hold.Close()
	t.life.close()
	*t = task{}
}

// close ends a life in order: everything goes on.
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

// deserted: the daemon is dead, and nothing is left of what it had told.
func (w *watcher) deserted() bool {
	for i := range w.tasks {
		t := &w.tasks[i]
		if t.out = t.out || t.life.gone(); !t.out {
			return false
		}
	}
	return true
}

// matters says whether the region has something that the next daemon wants to know: an act that was not told, or that something was done
// to a subjob.
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
