package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/artifacts"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/remote"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/process/syncs"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/journal"
	files "sluice.dev/sluice/internal/edge/store"
)

// waitingRemovals is how many run directories may wait to be removed before settling the next one removes it in place.
const waitingRemovals = 256

var _ executor.Executor = (*Executor)(nil)

// New prepares the data directory and asks the supervisor what can hold processes together here. Call Find before Do.
// Errors are of kind Invalid (options), Unavailable (the supervisor does not run) or as the file system has them.
func New(o Options) (*Executor, error) {
	o.defaults()
	o.BootID = cmp.Or(o.BootID, shim.BootID())
	var errs []error
	if !filepath.IsAbs(o.DataDir) {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "data directory %q: want an absolute path", o.DataDir))
	}
	if o.Joined.Owner != "" && (o.Store == nil || !o.Keep) {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "executor: jobs of owner %s need the owner's store, to keep what subjobs leave",
			o.Joined.Owner))
	}
	if o.Deliver == nil {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "executor: no function to deliver answers to"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	e := &Executor{o: o, s: folders.Layout(o.DataDir), originals: workdirs.New(folders.Layout(o.DataDir).In("unpacked")),
		box: executor.NewOutbox(o.Deliver), done: make(chan struct{}), runs: map[job.Token]*run{}, underway: map[underway]bool{}}
	e.residents.e, e.residents.all = e, map[job.Token]*resident{}
	e.past.Most = max(1, o.Retain.Settled)
	e.after = aftermath.Node{DataDir: o.DataDir, BootID: o.BootID, Names: &syncs.Shared{Path: e.s.In("runs")}, Now: o.now, Log: o.Logger}
	e.rooms.over, e.rooms.Runs = make(chan over, waitingRemovals), e.s.In("runs")
	e.pool.Program, e.pool.Runs = o.ShimPath, e.s.In("runs")
	warn := func(path string, err error) {
		o.Logger.Warn("removing what is too old to keep", "path", path, "err", err)
	}
	e.logs = shelf.Shelf{Root: e.s.In("logs"), Depth: 2, Most: 2 * o.Retain.Logs, Bytes: o.Retain.LogBytes, Warn: warn}
	e.lost = shelf.Shelf{Root: e.s.In("kept"), Depth: 1, Most: max(0, o.Retain.Lost), Bytes: o.Retain.LostBytes, Warn: warn}
	e.lives = folders.NewLives(e.s, o.Retain.Settled, warn)
	var err error
	for _, d := range []string{"runs", "output", "checkpoints", "logs", "kept", "lives", "trash"} {
		mode := os.FileMode(0o700)
		if d == "runs" || d == "checkpoints" { // a mapped user must be able to reach its own files
			mode = 0o711
		}
		err = cmp.Or(err, os.MkdirAll(e.s.In(d), mode))
	}
	err = cmp.Or(err, os.MkdirAll(e.originals.Dir(), 0o700))
	if err = cmp.Or(err, shim.SyncDir(o.DataDir)); err != nil { // files below them are reachable after a power cut only by these names
		return nil, fmt.Errorf("preparing the data directory: %w", err)
	}
	if e.artifacts, err = artifacts.Open(artifacts.Options{
		Layout: e.s, Store: o.Store, Keep: o.Keep, Owner: o.Joined.Owner, TakesNothing: o.Joined.TakesNothing, Limit: o.WorkdirLimit,
		Now: o.Now, Log: o.Logger,
	}); err != nil {
		return nil, err
	}
	e.Remote = &remote.Files{Layout: e.s, Lives: e.lives, Artifacts: e.artifacts, KeptLogs: &e.logs, OutputLimit: o.OutputLimit}
	if _, err := e.lives.Discard(e.s.In("settled")); err != nil { // older versions remembered there
		return nil, fmt.Errorf("preparing the data directory: %w", err)
	}
	e.tasks.Go(e.clean)
	e.tasks.Go(e.emptyTrash) // from a purge before this boot
	if o.Isolation != nil {
		e.iso = *o.Isolation
	} else if err := e.probeIsolation(); err != nil {
		return nil, err
	}
	if o.Survival != nil {
		e.sensor.o, e.sensor.post, e.sensor.all, e.sensor.done, e.sensor.tasks, e.sensor.base = &e.o, e.box.Post, e.all, e.done, &e.tasks,
			e.iso.Cgroup
		e.sensor.watcher.keep(&e.o, e.iso.Cgroup)
		e.tasks.Go(e.sensor.sense)
	}
	return e, nil
}

// StoreOwner reads the word by which a data directory's jobs are named in the store, or makes one: machines that join its daemon put what
// their subjobs leave under it (Cluster.Owner). A directory is no data directory before a daemon has made it one: call it after that.
func StoreOwner(dataDir string) (string, error) { return artifacts.Owner(dataDir) }

// probeIsolation has the supervisor find out what can hold processes together here, again if it is killed meanwhile.
func (e *Executor) probeIsolation() (err error) {
	var out []byte
	for range 3 {
		out, err = exec.Command(e.o.ShimPath, supervisor.Probe, e.originals.Dir()).Output()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.Exited() {
			break
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &e.iso)
	}
	if err != nil {
		return errkind.Errorf(errkind.Unavailable, "the supervisor %q does not run: %w; it is built with sluice and belongs next to it",
			e.o.ShimPath, err)
	}
	e.iso.Own = e.iso.Own && !e.o.SharedTmp
	return nil
}

// Isolation describes how subjobs' processes are held together, how their memory and number are bounded, and what they do not share.
func (e *Executor) Isolation() string {
	var parts []string
	switch {
	case e.iso.PIDNamespace && e.iso.UserNamespace:
		parts = append(parts, "pid namespace in a user namespace")
	case e.iso.PIDNamespace:
		parts = append(parts, "pid namespace")
	}
	if e.iso.Cgroup != "" {
		parts = append(parts, "control group")
	}
	if len(parts) == 0 {
		parts = append(parts, "process tree only (a program that hides can outlive its supervisor)")
	}
	say := func(held bool, yes, no string) {
		if !held {
			yes = no
		}
		parts = append(parts, yes)
	}
	say(e.iso.KernelMemory, "memory held by the kernel", "memory watched")
	say(e.iso.KernelProcesses, "processes held by the kernel", "processes counted")
	say(e.iso.Own, "/tmp and /dev/shm of its own", "/tmp and /dev/shm shared with the machine (its TMPDIR is its own)")
	parts = append(parts, "work directory by "+cmp.Or(e.iso.Work, shim.WorkCopy))
	if e.o.Survival != nil {
		parts = append(parts, "where memory is short "+e.o.Survival.Capability().String())
		say(e.sensor.watcher.keeper != nil, "by a watcher of its own", "by the daemon")
	}
	return strings.Join(parts, ", ")
}

// Watcher returns the pid of the machine's watcher, 0 where none lives, and its last act since this daemon began, for people; empty: none.
func (e *Executor) Watcher() (pid int, last string) {
	w := &e.sensor.watcher
	if w.keeper == nil {
		return 0, ""
	}
	if said := w.last.Load(); said != nil {
		last = *said
	}
	return w.keeper.PID(), last
}

// Do carries out one effect in the background.
func (e *Executor) Do(m protocol.Message, witness journal.Position) {
	if m.Kind == protocol.Purge && m.Generation == 0 && !e.isClosed() {
		e.purge(m, e.box.Post) // at a boot, before anything else: a later start must find the folders clear
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	r := e.runs[m.Token]
	switch m.Kind {
	case protocol.Start:
		if r != nil {
			r.told.Repeat()
			return
		}
		r = e.newRun(m.Token)
		r.of(m)
		if res, known := e.past.Of(m.Token); known {
			r.told.Ended(res)
			return
		}
		r.asked = e.o.now()
		e.runs[m.Token] = r
		e.tasks.Go(func() { r.launch(witness) })
	case protocol.Deadline, protocol.Stop:
		if r != nil {
			r.control.change(m)
			e.tasks.Go(r.control.pass)
			e.sensor.watcher.wake()
		}
	case protocol.Suspend, protocol.Resume:
		if r != nil && e.o.Survival != nil {
			r.still.want(m)
			e.tasks.Go(r.still.stand)
		}
	case protocol.Dismiss:
		e.residents.dismiss(m)
	case protocol.Settle:
		e.once(m, e.settle)
	case protocol.Purge:
		e.once(m, e.purge)
	default: // not for an executor
	}
}

// Close stops watching and waits until nothing is under way. Subjobs go on.
func (e *Executor) Close() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.done)
		e.artifacts.Close()
		e.pool.Close()
	}
	e.mu.Unlock()
	e.box.Close()
	if e.o.Survival == nil {
		e.tasks.Wait()
		return nil
	}
	e.o.Survival.Wake()
	e.tasks.Wait()
	var err error
	if k := e.sensor.watcher.keeper; k != nil {
		err = k.Close()
	}
	for _, s := range e.all() { // the handles; subjobs stay as they are
		s.release()
	}
	return errors.Join(err, e.o.Survival.Close())
}

// mostUnderway bounds how many requests are under way; more are dropped, and come again.
const mostUnderway = 1024

// once carries out a request, unless the same is under way: on a disk that does not answer, a request each second would otherwise add one
// more waiting goroutine each second. Its answer ends it: a request after that is carried out again. The caller holds e.mu.
func (e *Executor) once(m protocol.Message, do func(m protocol.Message, answer func(protocol.Message))) {
	u := underway{m.Kind, m.Token, m.Job, m.Generation}
	if e.underway[u] || len(e.underway) >= mostUnderway {
		return
	}
	e.underway[u] = true
	e.tasks.Go(func() {
		over := sync.OnceFunc(func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.underway, u)
		})
		defer over()
		do(m, func(out protocol.Message) {
			over()
			e.box.Post(out)
		})
	})
}

// purge clears the job's folders of files of lives before a generation, 0: of all. When it answers no reader finds any of them; the space
// is freed a little later. The stored copy may be another job's too: see PruneWorkdirs.
func (e *Executor) purge(m protocol.Message, answer func(protocol.Message)) {
	if err := e.lives.Clear(m.Job, m.Generation, e.artifacts.ForgetJob); err != nil {
		e.o.Logger.Error("removing what is kept of a job; it is asked for again", "job", string(m.Job), "err", err)
		return
	}
	if m.Generation != 0 {
		answer(protocol.Message{Kind: protocol.Purged, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.tasks.Go(e.emptyTrash)
	}
}

// emptyTrash removes what was purged.
func (e *Executor) emptyTrash() {
	if err := e.lives.Empty(e.isClosed); err != nil {
		e.o.Logger.Warn("removing what was purged", "err", err)
	}
}

// LogsSince is the time since which the logs of all subjobs that wrote any are kept, as far as is known: those of one that ended
// later and has none are empty.
func (e *Executor) LogsSince() time.Time { return e.logs.Since() }

// Outputs lists the folders of a job's committed subjobs in order of progress, and those of a gang in order of its members.
func (e *Executor) Outputs(j job.ID) ([]folders.Output, error) { return e.s.List(j) }

// Stored calls each with the jobs that have any files, so that those of unknown jobs can be purged: with some jobs several times, in no
// order, and a few hundred names at a time, since there may be a million. It stops at the first error.
func (e *Executor) Stored(each func(job.ID) error) error {
	for _, d := range []string{"output", "checkpoints", "logs", "lives"} {
		if err := e.storedIn(e.s.In(d), each); err != nil {
			return err
		}
	}
	return nil
}

func (e *Executor) storedIn(dir string, each func(job.ID) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			j, ok := files.JobOf(name)
			if !ok {
				continue
			}
			if err = each(j); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// PutWorkdir, TakeWorkdir, HasWorkdir and PruneWorkdirs are those of the node's artifacts: see there.
func (e *Executor) PutWorkdir(data []byte, limit int64) (executor.Workdir, error) {
	return e.artifacts.PutWork(data, limit)
}

// TakeWorkdir keeps a work directory that is in the store already.
func (e *Executor) TakeWorkdir(id string) (executor.Workdir, error) {
	return e.artifacts.TakeWork(id)
}

// HasWorkdir reports whether a stored work directory exists.
func (e *Executor) HasWorkdir(id string) (bool, error) { return e.artifacts.HasWork(id) }

// PruneWorkdirs removes stored work directories that keep says nobody needs.
func (e *Executor) PruneWorkdirs(keep func(id string) bool) error {
	return e.artifacts.PruneWork(keep)
}
