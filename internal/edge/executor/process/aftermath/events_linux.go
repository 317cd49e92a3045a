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

// tellEnd appends the end of a subjob to the events file, after its result: the supervisor, or an executor that made the result, may have
// died before it did so. The caller holds the lock, so nobody else appends it meanwhile. A failed append is tried again before the run
// directory is put away, and at the next start: a result never waits for it.
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

// TellBehind appends the end of a subjob that has its result to the events file, if that failed with the result. A living supervisor does
// it itself.
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

// lastEvent returns the last event of the subjob in the events files.
func (a *Aftermath) lastEvent() (string, error) {
	last, err := shim.LastEvent(a.Lease.Events, a.Token.String())
	if last == "" && err == nil { // it may have begun before the file did
		last, err = shim.LastEvent(folders.OldEvents(a.Node.DataDir), a.Token.String())
	}
	return last, err
}
