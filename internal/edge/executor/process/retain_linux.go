package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Stored calls each for the jobs of which something is kept, so that the files of those nobody knows any more can be purged: for some
// of them several times, in no order, and a few hundred names at a time, since there may be a million. It stops at the first error.
func (e *Executor) Stored(each func(job.ID) error) error {
	for _, d := range []string{"output", "checkpoints", "logs", "lives"} {
		if err := e.storedIn(e.s.in(d), each); err != nil {
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
			j, ok := named(name)
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

// rotateEvents begins a new events file once the one that is written has its full size, and drops the one before it.
// Supervisors open it by name for every line; one that is just writing finishes its line in the old file.
func (e *Executor) rotateEvents() {
	path := Events(e.o.DataDir)
	info, err := os.Stat(path)
	if err != nil || info.Size() < e.o.EventBytes {
		return
	}
	if err := os.Rename(path, OldEvents(e.o.DataDir)); err != nil {
		e.o.Logger.Warn("beginning a new events file", "path", path, "err", err)
	}
}

// PruneSnapshots removes stored work directories that keep says nobody needs. Those younger than an hour stay: their job
// may be about to be accepted.
func (e *Executor) PruneSnapshots(keep func(id string) bool) error {
	//sluice:trusted only the daemon writes there
	return filepath.WalkDir(e.s.in("snapshots"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if id, ok := snapshotID(d.Name()); ok && keep(id) {
			return nil
		}
		info, err := d.Info() // now: whoever submits a job with it makes it young before anybody accepts the job
		if err == nil && e.o.Now().Sub(info.ModTime()) > time.Hour {
			return os.Remove(path)
		}
		return nil
	})
}
