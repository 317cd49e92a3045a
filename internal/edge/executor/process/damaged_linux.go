package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// In single-user mode a program can change everything in its run directory, Sluice's own files too: put a folder where the result belongs,
// replace the lease, remove the note. Its processes are then found by the marks in their environment, by their control groups, and by the
// note if that can be read. They are killed, and the damage counts as the subjob's own failure.

// damaged says whether err means that a run directory, or a file in it, is missing or is not what Sluice wrote there.
func damaged(err error) bool {
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

// findDamaged ends a subjob that was found in a damaged run directory. It waits for a living supervisor to notice that its processes have
// ended and to release the lock.
func (e *Executor) findDamaged(ctx context.Context, r *run, why error) (*executor.Found, error) {
	e.o.Logger.Error("a run directory is damaged: its subjob is ended", "subjob", r.token.String(), "err", why)
	r.damage, r.lease.Token = why.Error(), r.token
	l := &r.lease
	r.start = e.startOf(l)
	res, err := job.Result{}, r.endRest(r.noted())
	for until := time.Now().Add(patience); err == nil; time.Sleep(10 * time.Millisecond) {
		if res, err = r.ended(); !shim.Held(err) || time.Now().After(until) || ctx.Err() != nil {
			break
		}
		err = nil
	}
	f := &executor.Found{Found: protocol.Found{Token: r.token, Job: l.Job, Slice: e.o.Present(l.Slice)}, Witness: l.Witness}
	switch {
	case err == nil:
		r.result, f.Result, f.Started = &res, &res, res.Start
	case errors.Is(err, errRemain), shim.Held(err):
		f.Stuck = true
		e.tasks.Go(r.conclude)
	default:
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs[r.token] = r
	return f, nil
}

// noted reads the supervisor's note. If it can't be read, the subjob is taken to have run since the machine was started last.
func (r *run) noted() shim.Note {
	note, err := r.dir.ReadNote()
	if err != nil {
		note = shim.Note{BootID: shim.BootID()}
	}
	return note
}

// lostNote says whether a supervisor was started here whose note is gone.
func (r *run) lostNote() bool {
	if last, err := r.lastEvent(); err == nil && last != "" || r.dir.Damaged() != "" {
		return true
	}
	all, _ := r.alive(shim.Note{})
	return len(all) > 0
}

// condemn kills the processes of a subjob whose run directory is damaged, repairs the directory so that it can be settled, and writes the
// result.
func (r *run) condemn(what string) (res job.Result, err error) {
	note := r.noted()
	if err := r.endRest(note); err != nil {
		return res, err
	}
	if err := r.restore(); err != nil {
		return res, fmt.Errorf("restoring a damaged run directory: %w", err)
	}
	if l, err := r.dir.ReadLease(); err == nil { // the result may have it where lease.json is damaged
		r.lease = l
	}
	if err := r.dir.Fence(); err != nil {
		return res, fmt.Errorf("fencing a run directory: %w", err)
	}
	res = job.Result{Outcome: job.LimitKilled, ExitCode: -1, Progress: r.lease.Range.From, Detail: shim.DamagedBy(what)}
	res.Start, res.End = note.At, max(note.At, r.e.o.now())
	if said := shim.Tail(r.dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, r.write(&res)
}

// restore makes the run directory a writable directory again, and removes what is no plain file in the place of Sluice's own files.
func (r *run) restore() error {
	dir := string(r.dir)
	_ = r.dir.Unmount() // whether output can be published does not matter: nothing counts
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
	for _, path := range []string{r.dir.Note(), r.dir.OlderLock(), r.dir.Control(), r.dir.Result(), r.dir.Stuck()} {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			if err := foreign.Remove(path); err != nil {
				return fmt.Errorf("removing %s: %w", filepath.Base(path), err)
			}
		}
	}
	return nil
}
