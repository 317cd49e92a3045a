package process

import (
	"cmp"
	"errors"
	"io/fs"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// tellEnd tells the events file the end of a subjob whose supervisor may have died before it did so itself, behind the result; an executor
// that made the result may have died as well. The caller holds the lock: nobody else can tell it meanwhile. What can't be
// told is tried again before the run directory is put away, and by who finds it next: a result never waits for it.
func (r *run) tellEnd(res *job.Result) {
	l := &r.lease
	if r.told || l.Events == "" {
		return
	}
	last, err := r.lastEvent()
	note, _ := r.dir.ReadNote() // who has none was not started, unless the power was cut
	if err == nil && (last == "start" || last == "" && note.At != 0) {
		to := l.Range.To
		if c, failed := r.dir.ReadControl(); failed == nil {
			to = max(to, c.Range.To)
		}
		end := shim.Event{
			What: "end", Token: r.token.String(), Job: l.Job, Slice: l.Slice, From: l.Range.From, To: to,
			PID: note.Init, Boot: int64(shim.Boottime()), Wall: time.Now(), Outcome: res.Outcome.String(),
		}
		end.Since(shim.AnchorAt(r.e.o.now()), cmp.Or(note.Gone, r.gone))
		err = shim.AppendEvent(l.Events, end)
	}
	if err != nil {
		r.e.o.Logger.Warn("telling the events file", "err", err)
	}
	r.told = err == nil
}

// tellBehind tells the end of a subjob that has its result, if that could not be told with the result. A supervisor that is there still
// tells it itself.
func (r *run) tellBehind() {
	if r.told || r.lease.Events == "" {
		return
	}
	lock, err := r.dir.TryLock()
	if err != nil {
		if !shim.Held(err) && !errors.Is(err, fs.ErrNotExist) {
			r.e.o.Logger.Warn("telling the events file", "err", err)
		}
		return
	}
	defer func() { _ = lock.Close() }()
	r.tellEnd(r.result)
}

// lastEvent is what the events files were told last of the subjob.
func (r *run) lastEvent() (string, error) {
	last, err := shim.LastEvent(r.lease.Events, r.token.String())
	if last == "" && err == nil { // it may have begun before the file did
		last, err = shim.LastEvent(folders.OldEvents(r.e.o.DataDir), r.token.String())
	}
	return last, err
}
