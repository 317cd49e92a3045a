package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	files "sluice.dev/sluice/internal/edge/store"
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

// PruneSnapshots removes stored work directories that keep says nobody needs, and with them all of the store that nobody names. Those younger than an hour stay: their
// job may be about to be accepted.
func (e *Executor) PruneSnapshots(keep func(id string) bool) error {
	err := errors.Join(e.pruneOld(keep), e.pruneIn(e.o.Store, keep))
	if e.own != nil {
		err = errors.Join(err, e.pruneIn(e.own, keep))
	}
	return err
}

func (e *Executor) pruneIn(s files.Store, keep func(id string) bool) error {
	now, err := s.Now(e.ctx)
	if err != nil {
		return err
	}
	err = s.Names(e.ctx, "work/"+e.owner, func(n files.Named) error {
		if keep(string(n.Refs["work"])) || now.Sub(n.Changed) <= time.Hour {
			return nil
		}
		return e.forgo(s, n.Name, now)
	})
	if err == nil {
		_, err = files.Collect(e.ctx, s, files.LeastAge, false)
	}
	return err
}

// forgo takes a name from a work directory, unless it was needed again just now.
func (e *Executor) forgo(s files.Store, name string, now time.Time) error {
	e.naming.Lock()
	defer e.naming.Unlock()
	n, err := s.ReadName(e.ctx, name)
	if errkind.Of(err) == errkind.NotFound || err == nil && now.Sub(n.Changed) <= time.Hour {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Unname(e.ctx, name)
}

// pruneOld is the same of those that a daemon of before has stored, in a folder of their own.
func (e *Executor) pruneOld(keep func(id string) bool) error {
	entries, err := os.ReadDir(e.s.in("snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range entries {
		if id, ok := strings.CutSuffix(d.Name(), ".tar.gz"); ok && keep(id) {
			continue
		}
		if info, gone := d.Info(); gone == nil && e.o.Now().Sub(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.Remove(e.s.in("snapshots", d.Name())))
		}
	}
	return err
}
