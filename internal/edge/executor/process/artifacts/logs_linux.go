package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
)

// Stdout and Stderr are the names of logs in the tree that the store has of them.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// putLogs puts the logs of a subjob that is over into the store, for its head: people ask there. There is always a tree, so that a subjob
// with a name and without output is not taken for one whose output was lost. What can't be read as a log, since the program has put
// something else into its place, is left out.
func (a *Artifacts) putLogs(ctx context.Context, dir shim.Dir, l *shim.Lease, refs files.Refs) error {
	build := a.o.Layout.In("runs", ".logs-"+l.Token.String()) // removed at the next start, if this one is cut off
	defer func() { _ = foreign.Remove(build) }()
	if err := errors.Join(foreign.Remove(build), os.Mkdir(build, 0o700)); err != nil {
		return fmt.Errorf("gathering the logs: %w", err)
	}
	for name, path := range map[string]string{Stdout: dir.Stdout(), Stderr: dir.Stderr()} {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() <= mostLog+l.LogLimit {
			err = os.Link(path, filepath.Join(build, name))
		} else {
			err = os.WriteFile(filepath.Join(build, name), nil, 0o600)
		}
		if err != nil {
			return fmt.Errorf("gathering the logs: %w", err)
		}
	}
	err := a.putOne(ctx, l, refs, logsRole, build)
	if errors.As(err, new(faults.Unstorable)) { // its result does not hang on its words
		a.o.Log.Warn("the logs of a subjob stay on this machine", "subjob", l.Token.String(), "err", err)
		err = os.WriteFile(unstoredLogs(dir), nil, 0o600)
	}
	return err
}

// nothing reports whether a subjob that is over has left neither output nor checkpoint nor words. A member of a gang always has a name, as
// the gang has one result for all of its members.
func nothing(dir shim.Dir, l *shim.Lease, res *job.Result) bool {
	if res.Checkpoint || l.Members > 0 {
		return false
	}
	if any, err := folders.Filled(dir.Output()); any || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, path := range []string{dir.Stdout(), dir.Stderr()} {
		info, err := os.Lstat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > 0) {
			return false
		}
	}
	return true
}

// unstoredLogs is in a run directory whose logs can't be stored.
func unstoredLogs(dir shim.Dir) string { return filepath.Join(string(dir), "unstored-logs") }

// LogsStored reports whether the logs of a subjob whose result was told are in the store, for its head.
func LogsStored(dir shim.Dir) bool {
	_, err := os.Lstat(unstoredLogs(dir))
	return errors.Is(err, fs.ErrNotExist)
}

// mostLog is by how much a log may pass its limit: a supervisor adds a line that says where it was cut.
const mostLog = 64 << 10

// mostHollow is how large unpacked logs may be whose object is smaller, since a program has put a file with holes there.
const mostHollow = 64 << 20

// FetchLogs gets the logs of a subjob of another machine into a new folder. found: there are any.
func (a *Artifacts) FetchLogs(ctx context.Context, j job.ID, t job.Token, into string) (found bool, err error) {
	n, err := a.o.Store.ReadName(ctx, a.resultName(j, t))
	if errkind.Of(err) == errkind.NotFound || err == nil && n.Refs[logsRole] == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o, err := a.o.Store.Stat(ctx, n.Refs[logsRole])
	if err != nil {
		return false, err
	}
	return true, a.unpack(ctx, n.Refs[logsRole], into, nil, max(o.Size, mostHollow))
}
