package aftermath

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/volume"
)

// Ended returns the result in the run directory. If there is none it makes one: it forbids further starts there, kills what remains, and
// counts the progress that the progress file states. An error that is shim.Held means that a supervisor lives.
func (a *Aftermath) Ended() (res job.Result, err error) {
	lock, err := a.Dir.TryLock()
	switch {
	case Damaged(err):
		res, err = a.condemn(err.Error())
	case err != nil:
		return res, err
	default:
		a.locked = true
		defer func() {
			a.locked = false
			_ = lock.Close()
		}()
		if res, err = a.Dir.ReadResult(); Damaged(err) {
			res, err = a.makeResult()
		} else if err == nil && a.Damage != "" {
			res, err = a.condemn(a.Damage)
		}
	}
	if err != nil {
		return res, err
	}
	a.tellEnd(&res)
	return res, a.lasting()
}

// lasting makes sure that an existing result survives a power cut. Its supervisor has synced it, unless it died just then; the names of
// run directories share one parent, and are synced for many at once.
func (a *Aftermath) lasting() error {
	if !a.well {
		if err := shim.SyncDir(string(a.Dir)); err != nil {
			return err
		}
	}
	if a.named == nil {
		a.named = a.Node.Names.Ask()
	}
	err := a.named.Wait()
	if err != nil {
		a.named = nil // asked again with the next try
	}
	return err
}

// makeResult makes the result of a subjob whose supervisor is gone and has left none. The caller holds the lock. Without a note no program
// was started: the daemon or the supervisor died before that, which is the node's failure.
func (a *Aftermath) makeResult() (res job.Result, err error) {
	if a.Damage != "" {
		return a.condemn(a.Damage)
	}
	if a.Lease.Outlived(a.Node.BootID) {
		note, _ := a.Dir.ReadNote() // as far as it survived a power cut
		return a.lost(note)
	}
	fenced := a.Dir.Fence()
	note, err := a.Dir.ReadNote()
	if fenced != nil && (err != nil || !volume.NoRoom(fenced)) { // in one with a note nothing is started a second time
		return res, fmt.Errorf("fencing a run directory: %w", fenced)
	}
	switch none := errors.Is(err, fs.ErrNotExist); {
	case none && a.lostNote():
		return a.condemn(filepath.Base(a.Dir.Note()) + " is gone")
	case none:
		why := "the supervisor ended before the start"
		if a.Unseen {
			why = "the daemon stopped before the start"
		}
		if said := shim.Tail(a.Dir.Log(), 5, 1<<10); said != "" {
			why += ": " + said
		}
		res = job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: a.Lease.Range.From, End: a.Node.Now(), Detail: why}
		return res, a.write(&res)
	case Damaged(err):
		return a.condemn(err.Error())
	case err != nil:
		return res, err
	}
	if err := a.EndRest(note); err != nil {
		return res, err
	}
	return a.lost(note)
}

// lost writes the result of a subjob whose supervisor died. If the subjob had hit a limit, that limit is the outcome. Else it is the node's
// failure if the machine was restarted, no daemon saw the death, or the program had ended before; and else the job's, since Sluice kills no
// supervisor while its daemon runs, but the program may have.
func (a *Aftermath) lost(note shim.Note) (job.Result, error) {
	control, err := a.Dir.ReadControl()
	to := a.Lease.Range.To
	if err == nil {
		to = max(to, control.Range.To)
	}
	e := shim.Ending{ExitCode: -1, Cause: job.Lost, Forced: true, To: to, FirstTo: a.Lease.Range.To}
	detail := "the supervisor died: somebody has killed it, perhaps the program itself"
	here := note.BootID == shim.BootID() && !a.Lease.Outlived(a.Node.BootID)
	switch {
	case !here:
		e.Cause, detail = job.NodeFailed, "the machine was restarted; what the subjob had written was not yet synced and does not count"
	case a.Unseen:
		e.Cause, detail = job.NodeFailed, "the supervisor died while no daemon was there"
	case note.Gone != 0: // all processes of the program had ended
		e.Cause, detail = job.NodeFailed, "the supervisor died while it stored what the subjob had left"
	}
	switch why := a.Reclaimed(); {
	case why != "":
		e.Cause, detail = job.Stopped, why+"; "+detail
	case a.hit != 0:
		e.Cause, detail = a.hit, a.hitWords+"; "+detail
	}
	var res job.Result
	if here {
		e.Unfit = a.Dir.Unmount()
		e.Said, e.Spoke = a.Dir.ReadProgress()
		stop := a.Storing(a.Lease.Range.From)
		res, err = a.Dir.Conclude(a.Lease, e)
		stop()
		if err != nil {
			return job.Result{}, fmt.Errorf("making what a lost subjob wrote durable: %w", err)
		}
	} else {
		res = shim.Judge(a.Lease, e)
	}
	if damage := a.Dir.Damaged(); damage != "" { // the supervisor may have died of it
		res.Outcome, res.Progress, res.Checkpoint, res.Detail = job.LimitKilled, a.Lease.Range.From, false, damage
	}
	if res.Outcome == job.LimitKilled && res.Detail != "" {
		detail = res.Detail + "; " + detail
	}
	res.Start, res.End, res.Detail = note.At, max(note.At, a.Node.Now()), detail
	if res.Outcome == job.MemoryKilled {
		res.Peak[trp.Memory] = max(res.Peak[trp.Memory], a.Lease.Memory)
	}
	res.Prepare, res.Unpack = a.Lease.Prepared(note.At)
	if said := shim.Tail(a.Dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, a.write(&res)
}
