package folders

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
)

// A job's folders are named after the job, in every life. DATA/lives/JOB names the first life whose files lie there: files of an older one
// are never moved there again, and a late Purge removes nothing newer.

// Lives excludes moving files of one life of a job to their place while the folders are cleared for the next life. Safe for concurrent
// use. Make it with NewLives.
type Lives struct {
	l      Layout
	kept   shelf.Shelf
	moving [64]sync.Mutex
	// emptying allows one emptying of the trash at a time.
	emptying sync.Mutex
}

// NewLives remembers the life of so many jobs' folders; warn is called for files that can't be removed.
func NewLives(l Layout, most int, warn func(path string, err error)) *Lives {
	return &Lives{l: l, kept: shelf.Shelf{Root: l.In("lives"), Depth: 1, Most: most, Bytes: math.MaxInt64, Warn: warn}}
}

// Place locks the folders of a job.
func (v *Lives) Place(j job.ID) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(j)) // a hash takes every write
	return &v.moving[h.Sum32()%uint32(len(v.moving))]
}

// First returns the first life whose files lie in the job's folders; 0 if that is not recorded: then it is the job's first life, unless
// the record was dropped as too old.
func (v *Lives) First(j job.ID) (job.Generation, error) {
	data, err := os.ReadFile(v.l.Life(j))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || len(data) == 0 { // truncated by a power cut: see write
		return 0, err
	}
	n, err := strconv.ParseUint(string(data), 10, 32)
	if err != nil {
		return 0, errkind.Errorf(errkind.Corrupt, "%s: %q is no life's number; remove the file if no other of the job's is older than "+
			"its present life", v.l.Life(j), data)
	}
	return job.Generation(n), nil
}

// Claim makes sure before a subjob starts that the job's folders belong to its life. It is an error if they belong to a later one.
func (v *Lives) Claim(j job.ID, of job.Generation) error {
	lock := v.Place(j)
	lock.Lock()
	defer lock.Unlock()
	first, err := v.First(j)
	switch {
	case err != nil:
		return err
	case first > of:
		return errkind.Errorf(errkind.Conflict, "it is of life %d of job %s, which is over: the job's files are those of life %d", of, j,
			first)
	case first != 0, of <= 1: // most jobs have one life, and no file
		return nil
	}
	return v.write(j, of)
}

// write does not sync: a late Purge or Settle, which it guards against, can't come after a power cut.
func (v *Lives) write(j job.ID, of job.Generation) error {
	temp := v.l.In("lives", ".new-"+files.Folder(j))
	if err := os.WriteFile(temp, fmt.Append(nil, of), 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, v.l.Life(j)); err != nil {
		return err
	}
	v.kept.Add(v.l.Life(j))
	return nil
}

// Clear moves the folders into the trash, if they are of a life before a generation (0: of any), and syncs their parents.
// unname is called first, while they are there: the next start finds the job by them.
func (v *Lives) Clear(j job.ID, before job.Generation, unname func(job.ID) error) error {
	lock := v.Place(j)
	lock.Lock()
	defer lock.Unlock()
	if first, err := v.First(j); err == nil && before != 0 && max(first, 1) >= before {
		return nil // the files here are newer; this purge was carried out before
	}
	if err := unname(j); err != nil {
		return err
	}
	paths := []string{v.l.Outputs(j), v.l.Checkpoints(j), v.l.Logs(j)}
	kept, err := filepath.Glob(v.l.In("kept", files.Folder(j)+".*"))
	if err != nil {
		return err
	}
	for _, path := range kept {
		// A name may go on with a dot: what follows must be a token and nothing else.
		if _, err := job.ParseToken(filepath.Base(path)[len(files.Folder(j))+1:]); err == nil {
			paths = append(paths, path)
		}
	}
	var errs []error
	moved := map[string]bool{}
	for _, path := range paths {
		gone, err := v.Discard(path)
		errs = append(errs, err)
		if gone {
			moved[filepath.Dir(path)] = true
		}
	}
	for dir := range moved {
		errs = append(errs, shim.SyncDir(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if before != 0 { // last: after a crash before this it is done again
		return v.write(j, before)
	}
	if err := os.Remove(v.l.Life(j)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Discard moves a tree, if it is there, into the trash, under a name of its own.
func (v *Lives) Discard(path string) (moved bool, err error) {
	if _, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// No folder is made for it there: Empty could remove that before the tree is in it.
	err = os.Rename(path, v.l.In("trash", rand.Text()))
	return err == nil, err
}

// Empty removes what was cleared, until it is over.
func (v *Lives) Empty(over func() bool) error {
	v.emptying.Lock()
	defer v.emptying.Unlock()
	entries, err := os.ReadDir(v.l.In("trash"))
	for _, entry := range entries {
		if over() {
			break
		}
		err = errors.Join(err, foreign.Remove(v.l.In("trash", entry.Name())))
	}
	return err
}
