package aftermath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// In single-user mode a program can change everything in its run directory, Sluice's own files too: put a folder where the result belongs,
// replace the lease, remove the note. Its processes are then found by the marks in their environment, by their control groups, and by the
// note if that can be read. They are killed, and the damage counts as the subjob's own failure.

// Damaged reports whether err means that a run directory, or a file in it, is missing or is not what Sluice wrote there.
func Damaged(err error) bool {
	switch {
	case err == nil, shim.Held(err), faults.OfNode(err):
		return false
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO):
		return true
	}
	k := errkind.Of(err)
	return k == errkind.Corrupt || k == errkind.Invalid
}

// Noted reads the supervisor's note. If it can't be read, the subjob is taken to have run since the machine was started last.
func (a *Aftermath) Noted() shim.Note {
	note, err := a.Dir.ReadNote()
	if err != nil {
		note = shim.Note{BootID: shim.BootID()}
	}
	return note
}

// lostNote reports whether a supervisor was started here whose note is gone.
func (a *Aftermath) lostNote() bool {
	if last, err := a.lastEvent(); err == nil && last != "" || a.Dir.Damaged() != "" {
		return true
	}
	all, _ := a.alive(shim.Note{})
	return len(all) > 0
}

// condemn kills the processes of a subjob whose run directory is damaged, repairs the directory so that it can be settled, and writes the
// result.
func (a *Aftermath) condemn(what string) (res job.Result, err error) {
	note := a.Noted()
	if err := a.EndRest(note); err != nil {
		return res, err
	}
	if err := a.restore(); err != nil {
		return res, fmt.Errorf("restoring a damaged run directory: %w", err)
	}
	if l, err := a.Dir.ReadLease(); err == nil { // the result may have the lease where lease.json is damaged
		*a.Lease = l
	}
	if err := a.Dir.Fence(); err != nil {
		return res, fmt.Errorf("fencing a run directory: %w", err)
	}
	res = job.Result{Outcome: job.LimitKilled, ExitCode: -1, Progress: a.Lease.Range.From, Detail: shim.DamagedBy(what)}
	res.Start, res.End = note.At, max(note.At, a.Node.Now())
	if said := shim.Tail(a.Dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, a.write(&res)
}

// restore makes the run directory a writable directory again, and removes what is no plain file in the place of Sluice's own files.
func (a *Aftermath) restore() error {
	dir := string(a.Dir)
	_ = a.Dir.Unmount() // whether output can be published does not matter: nothing counts
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Mkdir(dir, 0o711)
	case err != nil:
		return err
	case !info.IsDir():
		return errors.Join(foreign.Remove(dir), os.Mkdir(dir, 0o711))
	}
	foreign.Free(dir)
	for _, path := range []string{a.Dir.Note(), a.Dir.OlderLock(), a.Dir.Control(), a.Dir.Result(), a.Dir.Stuck()} {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			if err := foreign.Remove(path); err != nil {
				return fmt.Errorf("removing %s: %w", filepath.Base(path), err)
			}
		}
	}
	return nil
}
