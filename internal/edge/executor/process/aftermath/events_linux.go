package aftermath

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
func (a *Aftermath) tellEnd(res *job.Result) {
	l := a.Lease
	if a.told || l.Events == "" {
		return
	}
	last, err := a.lastEvent()
	note, _ := a.Dir.ReadNote() // who has none was not started, unless the power was cut
	if err == nil && (last == "start" || last == "" && note.At != 0) {
		to := l.Range.To
		if c, failed := a.Dir.ReadControl(); failed == nil {
			to = max(to, c.Range.To)
		}
		end := shim.Event{
			What: "end", Token: a.Token.String(), Job: l.Job, Slice: l.Slice, From: l.Range.From, To: to,
			PID: note.Init, Boot: int64(shim.Boottime()), Wall: time.Now(), Outcome: res.Outcome.String(),
		}
		end.Since(shim.AnchorAt(a.Node.Now()), cmp.Or(note.Gone, a.gone))
		err = shim.AppendEvent(l.Events, end)
	}
	if err != nil {
		a.Node.Log.Warn("telling the events file", "err", err)
	}
	a.told = err == nil
}

// TellBehind tells the end of a subjob that has its result, if that could not be told with the result. A supervisor that is there still
// tells it itself.
func (a *Aftermath) TellBehind(res *job.Result) {
	if a.told || a.Lease.Events == "" {
		return
	}
	lock, err := a.Dir.TryLock()
	if err != nil {
		if !shim.Held(err) && !errors.Is(err, fs.ErrNotExist) {
			a.Node.Log.Warn("telling the events file", "err", err)
		}
		return
	}
	defer func() { _ = lock.Close() }()
	a.tellEnd(res)
}

// lastEvent is what the events files were told last of the subjob.
func (a *Aftermath) lastEvent() (string, error) {
	last, err := shim.LastEvent(a.Lease.Events, a.Token.String())
	if last == "" && err == nil { // it may have begun before the file did
		last, err = shim.LastEvent(folders.OldEvents(a.Node.DataDir), a.Token.String())
	}
	return last, err
}
