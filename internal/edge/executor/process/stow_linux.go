package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// Where Options.Keep says so a result is told only once its output and checkpoint are in the store, named by the subjob's token (ADR 0049). They
// stay in the run directory, and what counts is published from there, as ever.

// roles of what a subjob has left, in its name.
const (
	outputRole     = "output"
	checkpointRole = "checkpoint"
)

// jobNames is the folder of a job's names in the store, resultName the name of what one subjob has left.
func (e *Executor) jobNames(j job.ID) string { return "jobs/" + e.owner + "/" + files.Folder(j) }
func (e *Executor) resultName(j job.ID, t job.Token) string {
	return e.jobNames(j) + "/" + t.String()
}

// storeTrouble is that the store can't take or give something now, whatever is wrong with it: it is tried again until it can.
type storeTrouble struct{ error }

func (s storeTrouble) Unwrap() error { return s.error }

// unstorable is that what a subjob has left can't be stored, and will not be the next time.
type unstorable struct{ error }

// tellStored puts what counts of a result into the store, and then tells it. It returns when that is done or the executor is closed; the next one does it
// again then.
func (r *run) tellStored(res job.Result) {
	if r.e.o.Keep {
		defer r.saysStoring(res.Progress)()
	}
	for pause := firstProbe; r.e.o.Keep; pause = min(2*pause, lastProbe) {
		err := r.stow(r.e.ctx, &res)
		r.e.waits(r.token, err)
		if err == nil {
			break
		}
		var hopeless unstorable
		if errors.As(err, &hopeless) {
			r.e.waits(r.token, nil)
			res = refused(&res, r.lease.Range.From, hopeless)
			break
		}
		if r.e.isClosed() {
			return
		}
		r.e.o.Logger.Error("putting what a subjob has left into the store; its result is told once it is there", "subjob", r.token.String(), "err", err)
		r.e.suspect(&r.start)
		select {
		case <-time.After(pause):
		case <-r.e.done:
			return
		}
	}
	r.over(res)
}

// saysStoring says again and again that nothing of the subjob lives and that what it has left is being stored, until what it returns is
// called: its slice is free meanwhile, and its home waits for the result beyond the lease's end.
func (r *run) saysStoring(progress int64) (stop func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		again := time.NewTicker(r.e.o.Report)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				r.answer(protocol.Message{Kind: protocol.Report, Body: &protocol.Observation{Slice: r.work().Slice, Progress: progress, At: r.e.o.now(),
					Storing: true, Vacant: true}})
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

// soon is how much a start puts into the store, in bytes for each subjob, before it goes on, and patiently how long it waits for the store at most.
const (
	soon      = 16 << 20
	patiently = 5 * time.Second
)

// storedSoon puts what counts of the result of a subjob that was found into the store, if that is there or is little. False: it is done beside what
// else the daemon does, and told then.
func (r *run) storedSoon(res *job.Result) bool {
	if foreign.Size(r.dir.Output(), soon)+foreign.Size(r.dir.Checkpoint(), soon) > soon {
		return false
	}
	ctx, cancel := context.WithTimeout(r.e.ctx, patiently)
	defer cancel()
	return r.stow(ctx, res) == nil
}

// refused is the result of a subjob that has left what can't be stored: none of it counts.
func refused(res *job.Result, from int64, why error) job.Result {
	out := *res
	out.Outcome, out.Progress, out.Checkpoint = job.LimitKilled, from, false
	out.Detail = "what it has left can't be stored, and does not count: " + strings.ToValidUTF8(why.Error(), "?") // it names files
	if res.Detail != "" {
		out.Detail += "; " + res.Detail
	}
	return out
}

// stowed says whether something of a result can count, and so belongs into the store.
func stowed(res *job.Result, l *shim.Lease) bool {
	return res.Progress > l.Range.From || res.Checkpoint
}

// stow puts output and checkpoint into the store and names them. It may be repeated: what is there is not put again.
func (r *run) stow(ctx context.Context, res *job.Result) error {
	l := &r.lease
	if !stowed(res, l) {
		return nil
	}
	e := r.e
	name := e.resultName(l.Job, l.Token)
	_, err := e.o.Store.ReadName(ctx, name)
	if k := errkind.Of(err); err == nil || k != errkind.NotFound && k != errkind.Corrupt {
		return trouble(err)
	}
	refs := files.Refs{}
	if err = r.stowOne(ctx, refs, outputRole, r.dir.Output()); err == nil && res.Checkpoint && l.Member == 0 {
		err = r.stowOne(ctx, refs, checkpointRole, r.dir.Checkpoint())
	}
	if err == nil && len(refs) > 0 {
		err = trouble(files.Name(ctx, e.o.Store, name, refs))
	}
	return err
}

// trouble marks an error of the store.
func trouble(err error) error {
	if err == nil {
		return nil
	}
	return storeTrouble{err}
}

// resumable is from which size on it pays to find out the digest first, so that an upload that breaks off can go on.
const resumable = 64 << 20

// stowOne puts a directory into the store, if it holds something.
func (r *run) stowOne(ctx context.Context, refs files.Refs, role, dir string) error {
	any, err := filled(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !any {
		return nil
	}
	if err != nil {
		return hopeless(err)
	}
	t, err := tree.Scan(dir)
	if err != nil {
		return hopeless(err)
	}
	defer func() { _ = t.Close() }()
	for _, left := range t.Left {
		r.e.o.Logger.Warn("a subjob's "+role+" is not stored whole", "subjob", r.token.String(), "left", left)
	}
	src := &reading{Source: t}
	var sum files.Digest
	if t.Size() >= resumable {
		if sum, err = files.Sum(ctx, src); err != nil && src.err == nil {
			return trouble(err) // given up
		}
	}
	var o files.Object
	if src.err == nil {
		o, err = r.e.o.Store.Put(ctx, sum, src)
	}
	if src.err != nil {
		return hopeless(fmt.Errorf("the %s: %w", role, src.err))
	}
	refs[role] = o.Digest
	return trouble(err)
}

// hopeless marks an error of reading what a subjob has left, unless it is the node's.
func hopeless(err error) error {
	for _, e := range nodeErrors() {
		if errors.Is(err, e) {
			return err
		}
	}
	return unstorable{err}
}

// reading is a source that remembers its own first error: whose fault a failed put is.
type reading struct {
	files.Source
	err error
}

func (s *reading) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(p, off)
	if err != nil && n < len(p) && off+int64(n) < s.Size() && s.err == nil {
		s.err = err
	}
	return n, err
}

// unstow takes the name from what a subjob has left that does not count. What it needed goes with the next collection; a name that is left behind
// because the store can't be reached goes with its job.
func (e *Executor) unstow(j job.ID, t job.Token) {
	if !e.o.Keep {
		return
	}
	if err := e.o.Store.Unname(e.ctx, e.resultName(j, t)); err != nil {
		e.o.Logger.Warn("what a subjob left that does not count stays in the store until its job is forgotten", "subjob", t.String(), "err", err)
	}
}

// unstowCheckpoint does so with the checkpoint of one that counts, once there is a newer one.
func (e *Executor) unstowCheckpoint(j job.ID, t job.Token) error {
	if !e.o.Keep {
		return nil
	}
	name := e.resultName(j, t)
	n, err := e.o.Store.ReadName(e.ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return nil
	}
	if err != nil || n.Refs[checkpointRole] == "" {
		return err
	}
	if delete(n.Refs, checkpointRole); len(n.Refs) == 0 {
		return e.o.Store.Unname(e.ctx, name)
	}
	return files.Name(e.ctx, e.o.Store, name, n.Refs)
}

// unstowJob takes all of a job's names.
func (e *Executor) unstowJob(j job.ID) error {
	if !e.o.Keep {
		return nil
	}
	var all []string
	err := e.o.Store.Names(e.ctx, e.jobNames(j), func(n files.Named) error {
		all = append(all, n.Name)
		return nil
	})
	for _, name := range all {
		if err == nil {
			err = e.o.Store.Unname(e.ctx, name)
		}
	}
	return err
}

// fetch gets a checkpoint that is not on this machine from the store, for a user, and puts it in its place.
func (r *run) fetch(t job.Token, path string, user *shim.User) error {
	e, j := r.e, r.start.Job
	n, err := e.o.Store.ReadName(e.ctx, e.resultName(j, t))
	if err == nil && n.Refs[checkpointRole] == "" {
		err = errkind.Errorf(errkind.NotFound, "%s has no checkpoint", n.Name)
	}
	if errkind.Of(err) == errkind.NotFound {
		return errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is neither at %s nor in the store: %w", t, path, err)
	}
	if err != nil {
		return trouble(err)
	}
	in, err := e.o.Store.Open(e.ctx, n.Refs[checkpointRole])
	if err != nil {
		return trouble(err)
	}
	defer func() { _ = in.Close() }()
	build := e.s.in("runs", ".fetch-"+r.token.String()) // removed at the next start, if this one is cut off
	if err = errors.Join(foreign.Remove(build), os.Mkdir(build, 0o700), give(build, user)); err != nil {
		return err
	}
	root, err := os.OpenRoot(build)
	if err == nil {
		_, _, err = tree.Unpack(in, root, tree.Limits{Bytes: or(r.work().Spec.Launch.OutputLimit, e.o.OutputLimit), Entries: tree.MaxEntries}, owning(user))
		err = errors.Join(err, root.Close())
	}
	if err == nil {
		_, _, err = foreign.Sync(build) // what has its place after a power cut is whole
	}
	if err == nil {
		err = r.settleIn(build, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("getting the checkpoint of subjob %v: %w", t, err), foreign.Remove(build))
	}
	return nil
}

// settleIn gives a checkpoint that was fetched, and synced, its place, unless another has it by now. It is sealed there: who is not root can't move
// a directory that it can't write to.
func (r *run) settleIn(build, path string) error {
	lock := r.e.place(r.start.Job)
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

// reachable says whether everything that is to be stored can be: the node starts nothing more as long as something can't.
func (e *Executor) reachable() error {
	e.waiting.Lock()
	away, waits := e.away, slices.SortedFunc(maps.Keys(e.unstored), job.Token.Compare)
	var err error
	if len(waits) > 0 {
		err = fmt.Errorf("what subjob %v has left can't be stored: %w", waits[0], e.unstored[waits[0]])
	}
	e.waiting.Unlock()
	if err != nil || !away {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, answers)
	defer cancel()
	if _, err := e.o.Store.Now(ctx); err != nil {
		return fmt.Errorf("the store is away: %w", err)
	}
	e.waiting.Lock()
	defer e.waiting.Unlock()
	e.away = false
	return nil
}

// answers is how long a store may take to say that it is there.
const answers = 10 * time.Second

// waits notes that what a subjob has left can't be stored, nil: that it is.
func (e *Executor) waits(t job.Token, why error) {
	e.waiting.Lock()
	defer e.waiting.Unlock()
	if delete(e.unstored, t); why != nil {
		e.unstored[t] = why
	}
}
