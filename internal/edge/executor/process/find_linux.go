package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Find looks at every run directory. One whose supervisor lives is watched again; of any other the result is read, or
// made: under the directory's lock, after fencing it, so that a supervisor that was started and is late finds the
// fence and starts nothing. A directory that its program has damaged is no error: the subjob is ended, and the damage is its result. Errors
// are the node's trouble and name the directory, in which nothing else was changed.
func (e *Executor) Find(ctx context.Context) ([]executor.Found, error) {
	if err := e.originals.Tidy(); err != nil {
		return nil, err
	}
	e.tasks.Go(func() {
		if err := e.originals.Forget(); err != nil {
			e.o.Logger.Warn("removing work directories that were unpacked before the machine was started", "err", err)
		}
	})
	if err := e.readBoot(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(e.s.In("runs"))
	if err != nil {
		return nil, err
	}
	homes := e.residents.find(entries)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		found []executor.Found
		errs  []error
	)
	for _, entry := range entries {
		name := entry.Name()
		if _, home := shim.HomeOf(name); home {
			continue
		}
		if strings.HasPrefix(name, ".") { // half built or half removed: never a run directory
			if err := foreign.Remove(e.s.In("runs", name)); err != nil {
				e.o.Logger.Warn("removing what is left of a run directory; it is tried again at the next start", "err", err)
			}
			continue
		}
		token, err := job.ParseToken(name)
		if err != nil {
			e.o.Logger.Warn("not a run directory", "name", e.s.In("runs", name), "err", err)
			continue
		}
		wg.Go(func() {
			f, err := e.find(ctx, token)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("run directory %s: %w", e.s.Run(token), err))
				return
			}
			if f != nil {
				found = append(found, *f)
			}
		})
	}
	wg.Wait()
	found = append(found, homes...)
	slices.SortFunc(found, func(a, b executor.Found) int { return a.Token.Compare(b.Token) })
	if len(errs) == 0 {
		errs = append(errs, e.writeBoot())
	}
	if e.o.Away != nil {
		e.artifacts.Away()
		e.suspect(&protocol.Message{})
	}
	if e.o.Joined.Owner != "" {
		e.tasks.Go(func() { (&disk{e}).keep() })
	}
	e.sensor.watcher.found.Store(true)
	e.sensor.watcher.wake()
	return found, errors.Join(errs...)
}

// readBoot finds out whether the machine was rebooted since run directories were last looked at. Then the remains of one without a result,
// after a power cut, are no damage. Without a record they were made by an older version, which synced all of them.
func (e *Executor) readBoot() error {
	last, err := os.ReadFile(e.s.In(bootFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e.cut = strings.TrimSpace(string(last)) != e.o.BootID
	return err
}

// writeBoot records that all run directories, present and future, are of this boot of the machine or were looked at under it.
func (e *Executor) writeBoot() error {
	if last, err := os.ReadFile(e.s.In(bootFile)); err == nil && string(last) == e.o.BootID+"\n" {
		return nil
	}
	return shim.WriteFile(e.s.In(bootFile), []byte(e.o.BootID+"\n"), 0o600)
}

// bootFile names the boot of the machine under which run directories were last looked at.
const bootFile = "runs.boot"

// find takes over one run directory. It returns nil if nothing that counts is left of it after a power cut.
func (e *Executor) find(ctx context.Context, token job.Token) (f *executor.Found, err error) {
	r := e.newRun(token)
	r.control.place()
	r.after.Unseen = true
	if r.lease, err = r.dir.ReadLease(); err != nil && e.cut {
		if _, failed := r.dir.ReadResult(); errors.Is(failed, fs.ErrNotExist) {
			e.o.Logger.Info("a subjob was cut off with the machine: nothing of it counts", "subjob", token.String(), "left", err.Error())
			return nil, foreign.Remove(string(r.dir))
		}
	}
	if aftermath.Damaged(err) {
		return e.findDamaged(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	l := &r.lease
	e.originals.Found(l)
	r.of(e.startOf(l))
	c, err := r.dir.ReadControl()
	switch {
	case err == nil:
		r.control.restore(c)
	case !aftermath.Damaged(err) && !l.Outlived(e.o.BootID):
		return nil, err
	}
	f = &executor.Found{Found: protocol.Found{Token: token, Job: l.Job, Slice: e.o.Present(l.Slice)}, Witness: l.Witness}
	var remain aftermath.Remain
	res, err := r.after.Ended()
	if shim.Held(err) {
		res, err = r.dying(ctx)
	}
	switch {
	case err == nil && e.o.Keep && !r.storedSoon(&res): // it is told once its artifacts are in the store, as for one that ends now
		r.still.findSuspended()
		r.told.Restore(executor.State{Began: res.Start})
		f.Alive, f.Started = true, res.Start
		e.tasks.Go(func() { r.tellStored(res) })
	case err == nil:
		r.still.findSuspended()
		res = r.still.excused(res)
		r.told.Restore(executor.State{Result: &res})
		f.Result, f.Started = &res, res.Start
	case errors.As(err, &remain):
		r.told.Stuck(string(remain))
		f.Stuck = true
		e.tasks.Go(r.conclude)
	case shim.Held(err):
		note, noteErr := r.awaitNote(ctx)
		if aftermath.Damaged(noteErr) {
			return e.findDamaged(ctx, r, noteErr)
		}
		if noteErr != nil {
			return nil, noteErr
		}
		stuck := r.dir.ReadStuck()
		r.told.Restore(executor.State{Began: note.At, Stuck: stuck})
		f.Stuck, f.Alive, f.Started = stuck != "", stuck == "", note.At
		r.still.findSuspended()
		f.Still = f.Alive && r.still.found(note)
		r.after.Unseen = false
		s := r.adopted(tree.Process{PID: note.PID, Started: note.Started})
		e.tasks.Go(func() { _ = r.watch(s) })
	default:
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs[token] = r
	return f, nil
}

// startOf is the Start message that asked for a subjob, as far as its lease says.
func (e *Executor) startOf(l *shim.Lease) protocol.Message {
	return protocol.Message{
		From: l.Node, To: l.Executor, Token: l.Token, Job: l.Job, Generation: l.Generation,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: e.o.Present(l.Slice), Range: l.Range, End: l.End}},
	}
}

// dying waits for the lock of a dead supervisor whose last threads are just ending; if the supervisor lives it returns at once that the
// lock is held.
func (r *run) dying(ctx context.Context) (res job.Result, err error) {
	for until := time.Now().Add(aftermath.Patience); ; time.Sleep(time.Millisecond) {
		note, noteErr := r.dir.ReadNote()
		res, err = r.after.Ended()
		if !shim.Held(err) || noteErr != nil || (tree.Process{PID: note.PID, Started: note.Started}).Alive() || time.Now().After(until) ||
			ctx.Err() != nil {
			return res, err
		}
	}
}

// awaitNote reads the note of a supervisor that holds the lock: it writes it at once.
func (r *run) awaitNote(ctx context.Context) (shim.Note, error) {
	for until := time.Now().Add(aftermath.Patience); ; {
		note, err := r.dir.ReadNote()
		if !errors.Is(err, fs.ErrNotExist) {
			return note, err
		}
		if time.Now().After(until) {
			return note, fmt.Errorf("locked by a process that is no supervisor, or by one that hangs: see who has %s open", r.dir.Note())
		}
		if executor.Pause(ctx.Done(), 10*time.Millisecond) {
			return note, ctx.Err()
		}
	}
}

// findDamaged ends a subjob that was found in a damaged run directory. It waits for a living supervisor to notice that its processes have
// ended and to release the lock.
func (e *Executor) findDamaged(ctx context.Context, r *run, why error) (*executor.Found, error) {
	e.o.Logger.Error("a run directory is damaged: its subjob is ended", "subjob", r.token.String(), "err", why)
	r.after.Damage, r.lease.Token = why.Error(), r.token
	l := &r.lease
	r.of(e.startOf(l))
	res, err := job.Result{}, r.after.EndRest(r.after.Noted())
	for until := time.Now().Add(aftermath.Patience); err == nil; time.Sleep(10 * time.Millisecond) {
		if res, err = r.after.Ended(); !shim.Held(err) || time.Now().After(until) || ctx.Err() != nil {
			break
		}
		err = nil
	}
	f := &executor.Found{Found: protocol.Found{Token: r.token, Job: l.Job, Slice: e.o.Present(l.Slice)}, Witness: l.Witness}
	var remain aftermath.Remain
	switch {
	case err == nil:
		r.told.Restore(executor.State{Result: &res})
		f.Result, f.Started = &res, res.Start
	case errors.As(err, &remain):
		r.told.Stuck(string(remain))
		fallthrough
	case shim.Held(err):
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

// adopted is the supervisor of a run directory found at start.
func (r *run) adopted(p tree.Process) *pool.Supervisor {
	s := &pool.Supervisor{Kill: func() error { return p.Signal(syscall.SIGKILL) }, Gone: make(chan struct{})}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		fd = -1 // poll ignores it and only waits
	}
	r.e.tasks.Go(func() {
		for p.Alive() && !r.e.isClosed() {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(glance.Milliseconds()))
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		close(s.Gone)
	})
	return s
}
