package process

import (
	"cmp"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
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

// prune removes what is older than the newest that are to be kept: logs, work that does not count, memories of settled
// subjobs, and told events.
func (e *Executor) prune() {
	e.pruning.Lock()
	defer e.pruning.Unlock()
	e.pruneTo(e.s.in("settled"), 1, e.o.KeepSettled, math.MaxInt64)
	e.pruneTo(e.s.in("lives"), 1, e.o.KeepSettled, math.MaxInt64)
	e.pruneTo(e.s.in("logs"), 2, 2*e.o.KeepLogs, e.o.KeepLogBytes)
	e.pruneTo(e.s.in("kept"), 1, max(0, e.o.KeepLost), e.o.KeepLostBytes)
	e.rotateEvents()
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

// pruneTo keeps the newest entries depth levels below root: n of them at most, and no more than so many bytes together.
func (e *Executor) pruneTo(root string, depth, n int, bytes int64) {
	pattern := root
	for range depth {
		pattern = filepath.Join(pattern, "*")
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return
	}
	type aged struct {
		path string
		at   time.Time
		size int64
	}
	var all []aged
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil {
			a := aged{path: p, at: info.ModTime()}
			if bytes < math.MaxInt64 {
				a.size = foreign.Size(p, bytes)
			}
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b aged) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.path, a.path))
	})
	keep := 0
	for keep < min(n, len(all)) && all[keep].size <= bytes {
		bytes -= all[keep].size
		keep++
	}
	for _, a := range all[keep:] {
		if err := foreign.Remove(a.path); err != nil {
			e.o.Logger.Warn("removing what is too old to keep", "path", a.path, "err", err)
		}
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
