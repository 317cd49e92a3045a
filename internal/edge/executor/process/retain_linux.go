package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Stored lists the jobs of which something is kept, so that the files of those nobody knows any more can be purged.
func (e *Executor) Stored() ([]job.ID, error) {
	seen := map[job.ID]bool{}
	for _, d := range []string{"output", "checkpoints", "logs", "lives"} {
		entries, err := os.ReadDir(e.s.in(d))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if j, ok := named(entry.Name()); ok {
				seen[j] = true
			}
		}
	}
	jobs := make([]job.ID, 0, len(seen))
	for j := range seen {
		jobs = append(jobs, j)
	}
	slices.Sort(jobs)
	return jobs, nil
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
		info, err := d.Info()
		if err != nil {
			return nil // it went meanwhile
		}
		if id, ok := snapshotID(d.Name()); (!ok || !keep(id)) && e.o.Now().Sub(info.ModTime()) > time.Hour {
			return os.Remove(path)
		}
		return nil
	})
}
