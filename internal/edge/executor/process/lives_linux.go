package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
)

// The folders of a job are named after it, whichever of its lives they are of. DATA/lives/JOB says which is the first one
// whose files lie there: what is older is never moved there again, and a Purge that comes late removes nothing newer.

// place locks the folders of a job.
func (e *Executor) place(j job.ID) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(j)) // a hash takes every write
	return &e.moving[h.Sum32()%uint32(len(e.moving))]
}

// firstLife is the first life whose files lie in the job's folders; 0 if nobody has said: then it is the first of all, unless
// that was said so long ago that it is forgotten.
func (e *Executor) firstLife(j job.ID) (job.Generation, error) {
	data, err := os.ReadFile(e.s.life(j))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || len(data) == 0 { // cut off by the power: see writeLife
		return 0, err
	}
	n, err := strconv.ParseUint(string(data), 10, 32)
	if err != nil {
		return 0, errkind.Errorf(errkind.Corrupt, "%s: %q is no life's number; remove the file if no other of the job's is older than its present life", e.s.life(j), data)
	}
	return job.Generation(n), nil
}

// claimFolders makes sure before a subjob starts that the job's folders are its life's. An error says that they are a
// later one's.
func (e *Executor) claimFolders(j job.ID, of job.Generation) error {
	lock := e.place(j)
	lock.Lock()
	defer lock.Unlock()
	first, err := e.firstLife(j)
	switch {
	case err != nil:
		return err
	case first > of:
		return errkind.Errorf(errkind.Conflict, "it is of life %d of job %s, which is over: the job's files are those of life %d", of, j, first)
	case first != 0, of <= 1: // of most jobs there is one life, and no file
		return nil
	}
	return e.writeLife(j, of)
}

// writeLife is not synced: what a late Purge or a late Settle could do to newer files they can't do after the power was cut.
func (e *Executor) writeLife(j job.ID, of job.Generation) error {
	temp := e.s.in("lives", ".new-"+files.Folder(j))
	if err := os.WriteFile(temp, fmt.Append(nil, of), 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, e.s.life(j)); err != nil {
		return err
	}
	e.lives.add(e.s.life(j))
	return nil
}

// purge clears the job's folders of what lives before a generation have left there, 0: of everything. When it answers
// nothing of that is where a reader finds it; the space comes back a little later. Its snapshot may be another job's too:
// see PruneSnapshots.
func (e *Executor) purge(m protocol.Message, answer func(protocol.Message)) {
	if err := e.clear(m.Job, m.Generation); err != nil {
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

// clear moves the folders into the trash and syncs the places where they were.
func (e *Executor) clear(j job.ID, before job.Generation) error {
	lock := e.place(j)
	lock.Lock()
	defer lock.Unlock()
	if first, err := e.firstLife(j); err == nil && before != 0 && max(first, 1) >= before {
		return nil // what lies here is newer; it was asked for before
	}
	if err := e.unstowJob(j); err != nil { // while its folders are there: the next start finds it by them
		return err
	}
	paths := []string{e.s.outputs(j), e.s.checkpoints(j), e.s.logs(j)}
	kept, err := filepath.Glob(e.s.in("kept", files.Folder(j)+".*"))
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
		gone, err := e.discard(path)
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
	if before != 0 { // only now: cut off before, it is done again
		return e.writeLife(j, before)
	}
	if err := os.Remove(e.s.life(j)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// discard moves a tree, if it is there, into the trash, under a name of its own.
func (e *Executor) discard(path string) (moved bool, err error) {
	if _, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// No folder is made for it there: emptyTrash could remove that before the tree is in it.
	err = os.Rename(path, e.s.in("trash", rand.Text()))
	return err == nil, err
}

// emptyTrash removes what was purged.
func (e *Executor) emptyTrash() {
	e.emptying.Lock()
	defer e.emptying.Unlock()
	entries, err := os.ReadDir(e.s.in("trash"))
	if err != nil {
		e.o.Logger.Warn("looking for what was purged", "err", err)
		return
	}
	for _, entry := range entries {
		if e.isClosed() {
			return
		}
		if err := foreign.Remove(e.s.in("trash", entry.Name())); err != nil {
			e.o.Logger.Warn("removing what was purged", "err", err)
		}
	}
}
