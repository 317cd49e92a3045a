package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// With Options.Keep a result is told only once its output and checkpoint are in the store, named by the subjob's token (ADR 0049). They
// stay in the run directory, and are published from there as without a store.

// tellStored puts what counts of a result into the store, and then tells it. It returns when that is done or the executor is closed; the
// next daemon then does it again.
func (r *run) tellStored(res job.Result) {
	if r.e.o.Keep {
		defer r.saysStoring(res.Progress)()
	}
	for pause := firstProbe; r.e.o.Keep; pause = min(2*pause, lastProbe) {
		err := r.e.artifacts.Put(r.e.artifacts.Context(), r.dir, &r.lease, &res)
		r.e.artifacts.Waits(r.token, err)
		if err == nil {
			break
		}
		var hopeless faults.Unstorable
		if errors.As(err, &hopeless) {
			r.e.artifacts.Waits(r.token, nil)
			res = refused(&res, r.lease.Range.From, hopeless)
			break
		}
		if r.e.isClosed() {
			return
		}
		r.e.o.Logger.Error("putting what a subjob has left into the store; its result is told once it is there", "subjob", r.token.String(),
			"err", err)
		r.e.suspect(&r.start)
		select {
		case <-time.After(pause):
		case <-r.e.done:
			return
		}
	}
	r.over(res)
}

// saysStoring reports repeatedly that no process of the subjob lives and that its output is being stored, until the function that it
// returns is called: its slice is free meanwhile, and its home waits for the result beyond the lease's end.
func (r *run) saysStoring(progress int64) (stop func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		again := time.NewTicker(r.e.o.Report)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				r.answer(protocol.Message{Kind: protocol.Report, Body: &protocol.Observation{Slice: r.work().Slice, Progress: progress,
					At:      r.e.o.now(),
					Storing: true, Vacant: true}})
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

// soon is how much a daemon's start puts into the store before it goes on, in bytes for each subjob, and patiently how long it waits for
// the store at most.
const (
	soon      = 16 << 20
	patiently = 5 * time.Second
)

// storedSoon puts what counts of a found subjob's result into the store, if that is there already or is little. False: that is done in the
// background, and the result told then.
func (r *run) storedSoon(res *job.Result) bool {
	if foreign.Size(r.dir.Output(), soon)+foreign.Size(r.dir.Checkpoint(), soon) > soon {
		return false
	}
	ctx, cancel := context.WithTimeout(r.e.artifacts.Context(), patiently)
	defer cancel()
	return r.e.artifacts.Put(ctx, r.dir, &r.lease, res) == nil
}

// refused is the result of a subjob whose output can't be stored: none of it counts.
func refused(res *job.Result, from int64, why error) job.Result {
	out := *res
	out.Outcome, out.Progress, out.Checkpoint = job.LimitKilled, from, false
	out.Detail = "what it has left can't be stored, and does not count: " + strings.ToValidUTF8(why.Error(), "?") // it names files
	if res.Detail != "" {
		out.Detail += "; " + res.Detail
	}
	return out
}

// fetch gets a checkpoint that is not on this machine from the store, for a user, and puts it in its place.
func (r *run) fetch(t job.Token, path string, user *shim.User) error {
	build := r.e.s.In("runs", ".fetch-"+r.token.String()) // removed at the next start, if this one is cut off
	err := r.e.artifacts.Fetch(r.start.Job, t, build, user, or(r.work().Spec.Launch.OutputLimit, r.e.o.OutputLimit))
	switch {
	case errkind.Of(err) == errkind.NotFound:
		return errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is neither at %s nor in the store: %w", t, path, err)
	case errors.As(err, new(faults.Store)):
		return err
	case err == nil:
		err = r.settleIn(build, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("getting the checkpoint of subjob %v: %w", t, err), foreign.Remove(build))
	}
	return nil
}

// settleIn moves a fetched and synced checkpoint to its place, unless one is there by now. It is sealed there: who is not root
// can't move a directory that it can't write to.
func (r *run) settleIn(build, path string) error {
	lock := r.e.lives.Place(r.start.Job)
	lock.Lock()
	defer lock.Unlock()
	folder := filepath.Dir(path)
	err := errors.Join(os.MkdirAll(folder, 0o711), shim.SyncDir(filepath.Dir(folder)))
	if err == nil {
		err = os.Rename(build, path)
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return foreign.Remove(build)
	}
	if err != nil {
		return err
	}
	if err = foreign.Seal(path); err != nil {
		r.e.o.Logger.Warn("taking the right to write from a checkpoint", "subjob", r.token.String(), "err", err)
	}
	return errors.Join(shim.SyncDir(folder), shim.SyncDir(filepath.Dir(build)))
}
