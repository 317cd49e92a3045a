package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor/process/artifacts"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Files are those of subjobs on other machines. Every method may be repeated, and changes nothing for a job whose files were cleared for a
// later life than the one it is called with. Safe for concurrent use.
type Files struct {
	Layout    folders.Layout
	Lives     *folders.Lives
	Artifacts *artifacts.Artifacts
	// KeptLogs bounds the logs of subjobs that are over.
	KeptLogs *shelf.Shelf
	// OutputLimit is the default for jobs that give none, in bytes.
	OutputLimit int64

	// busy serializes calls for one subjob, which unpack to one place: who asks for what is just brought waits for it.
	busy [32]sync.Mutex
}

// lock excludes other calls for a subjob, until the function that it returns is called.
func (f *Files) lock(t job.Token) (unlock func()) {
	m := &f.busy[t.Seq%uint64(len(f.busy))]
	m.Lock()
	return m.Unlock
}

// Output makes sure that the output of a committed subjob is in its place: o says of which one, for which units and member. Errors name
// the subjob; Corrupt: the store has lost it, or it is damaged there.
func (f *Files) Output(ctx context.Context, j *status.Job, o status.Output) error {
	defer f.lock(o.Token)()
	path := f.Layout.Output(j.Name, o.Range)
	if o.Member > 0 {
		path = f.Layout.Member(j.Name, o.Range, o.Member)
	}
	if there(path) || there(folders.NothingFile(path)) {
		return nil
	}
	build := f.Layout.In("runs", ".output-"+o.Token.String()) // removed at the next start, if this one is cut off
	limit := f.OutputLimit
	if j.Spec != nil && j.Spec.Launch.OutputLimit > 0 {
		limit = j.Spec.Launch.OutputLimit
	}
	wrote, err := f.Artifacts.FetchOutput(ctx, j.Name, o.Token, build, limit)
	if err == nil {
		err = f.placed(j, func() error { return f.publish(build, path, &o, wrote) })
	}
	if err = errors.Join(err, foreign.Remove(build)); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errkind.Errorf(errkind.Unavailable, "the output of subjob %v is not here yet: ask again: %w", o.Token, context.Cause(ctx))
	}
	kind, advice := errkind.Of(err), "ask again once that is mended"
	if kind == errkind.NotFound || kind == errkind.Corrupt || kind == errkind.Invalid { // Invalid: what is damaged is no archive
		kind, advice = errkind.Corrupt, "restore the store from a backup, or run the job again from its start (sluice submit --replace)"
	}
	return errkind.Errorf(kind, "the output of subjob %v (units %d to %d) can't be had from %s: %w; %s", o.Token, o.Range.From, o.Range.To,
		f.Artifacts.Where(), err, advice)
}

// publish moves an unpacked output to its place, which is durable when it returns. Its owner is recorded first, as for one of this machine.
func (f *Files) publish(build, path string, o *status.Output, wrote bool) error {
	note := folders.TokenFile(path)
	if !wrote {
		note = folders.NothingFile(path)
	}
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		return err
	}
	if err := shim.WriteFile(note, []byte(o.Token.String()), 0o600); err != nil {
		return err
	}
	for dir := filepath.Dir(filepath.Dir(note)); dir != f.Layout.In(); dir = filepath.Dir(dir) {
		if err := shim.SyncDir(dir); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	_, err := folders.Move(build, path, 0o700, false)
	return err
}

// Logs makes sure that the logs of a subjob that is over are in their place, and reports whether the store or this machine has any.
func (f *Files) Logs(ctx context.Context, j *status.Job, t job.Token) (found bool, err error) {
	defer f.lock(t)()
	stdout, stderr := folders.LogPath(string(f.Layout), j.Name, t, false)
	if there(stdout) || there(stderr) {
		return true, nil
	}
	build := f.Layout.In("runs", ".brought-"+t.String())
	if found, err = f.Artifacts.FetchLogs(ctx, j.Name, t, build); found && err == nil {
		err = f.placed(j, func() error { return f.keepLogs(build, stdout, stderr) })
	}
	if err = errors.Join(err, foreign.Remove(build)); err != nil {
		err = fmt.Errorf("the logs of subjob %v can't be had from %s: %w", t, f.Artifacts.Where(), err)
	}
	return found, err
}

func (f *Files) keepLogs(build, stdout, stderr string) error {
	folder := filepath.Dir(stdout)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var kept []string
	for _, log := range [][2]string{{artifacts.Stdout, stdout}, {artifacts.Stderr, stderr}} {
		from := filepath.Join(build, log[0])
		if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() {
			continue // a machine may bring anything: a link would show its reader a file of this machine
		}
		if err := os.Rename(from, log[1]); err != nil {
			return err
		}
		kept = append(kept, log[1])
	}
	if err := errors.Join(shim.SyncDir(folder), shim.SyncDir(filepath.Dir(folder))); err != nil {
		return err
	}
	f.KeptLogs.Add(kept...)
	return nil
}

// Forget removes from the store what nobody needs of a subjob that is over: its logs, which are in their place, and if nothing of it counts
// everything.
func (f *Files) Forget(ctx context.Context, j *status.Job, t job.Token, counts bool) error {
	return f.placed(j, func() error { return f.Artifacts.Settled(ctx, j.Name, t, counts) })
}

// HasCheckpoint reports whether the store has a subjob's checkpoint.
func (f *Files) HasCheckpoint(ctx context.Context, j *status.Job, t job.Token) (bool, error) {
	return f.Artifacts.HasCheckpoint(ctx, j.Name, t)
}

// ForgetCheckpoint removes a checkpoint that nobody needs from the store.
func (f *Files) ForgetCheckpoint(_ context.Context, j *status.Job, t job.Token) error {
	return f.placed(j, func() error { return f.Artifacts.ForgetCheckpoint(j.Name, t) })
}

// placed has do change a job's files, unless they were cleared for a later life than j.
func (f *Files) placed(j *status.Job, do func() error) error {
	lock := f.Lives.Place(j.Name)
	lock.Lock()
	defer lock.Unlock()
	first, err := f.Lives.First(j.Name)
	if err != nil || first > j.Generation.Number() {
		return err
	}
	return do()
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
