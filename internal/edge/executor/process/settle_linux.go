package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// settle puts the directories of an ended subjob where they belong, and answers. Every step may be done again, so that
// it can be taken up wherever it stopped. An error (a full disk) is tried again until it passes.
func (e *Executor) settle(m protocol.Message, answer func(protocol.Message)) {
	e.mu.Lock()
	r := e.runs[m.Token]
	e.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		ended := r.result != nil
		r.mu.Unlock()
		if !ended {
			return // there is nothing to settle yet; the node asks again
		}
		r.settling.Lock()
		defer r.settling.Unlock()
	}
	for {
		if r != nil {
			r.tellBehind()
		}
		err := e.settleOnce(m, r)
		if err == nil {
			break
		}
		e.o.Logger.Error("settling the directories of a subjob; trying again", "subjob", m.Token.String(), "err", err)
		if ofTheNode(err) {
			e.suspect(&m)
		}
		select {
		case <-time.After(time.Second):
		case <-e.done:
			return
		}
	}
	e.mu.Lock()
	if r != nil && e.runs[m.Token] == r {
		delete(e.runs, m.Token)
		e.past.add(m.Token, r.result)
	}
	e.settles++
	tidy := e.settles%100 == 1
	e.mu.Unlock()
	answer(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
	if tidy {
		e.rotateEvents()
		e.logs.add() // what an earlier daemon kept may be more than this one is to keep
		e.lost.add()
	}
}

func (e *Executor) settleOnce(m protocol.Message, r *run) error {
	dir := e.s.run(m.Token)
	_, err := os.Stat(string(dir))
	switch {
	case err == nil:
		if err = e.putAway(dir, m); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case r == nil:
		return nil // settled before
	}
	// What is worth keeping is in its place, durably. Should a power cut bring the rest back it is put away once more.
	old := e.s.in("runs", ".old-"+m.Token.String())
	if err := rename(string(dir), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	done := over{path: old}
	if r != nil {
		done.room = r.room
	}
	select {
	case e.over <- done:
		return nil
	default: // whoever removes them can't keep up: no more start than end
		return foreign.Remove(old)
	}
}

// over is a run directory that is done with, and what it was made of.
type over struct {
	path string
	room *room
}

// clean puts away the run directories that are done with. What it does not come to before the end, the next start removes.
func (e *Executor) clean() {
	for {
		select {
		case <-e.done:
			return
		case old := <-e.over:
			if err := e.rooms.done(old.path, old.room); err != nil {
				e.o.Logger.Warn("removing a run directory; it is tried again at the next start", "path", old.path, "err", err)
			}
		}
	}
}

// putAway empties the run directory of what is worth keeping.
func (e *Executor) putAway(dir shim.Dir, m protocol.Message) error {
	lease, err := dir.ReadLease()
	if err != nil {
		return err
	}
	if lease.Job == "" { // the lease could not be read: the run directory was damaged
		if lease.Job = m.Job; lease.Job == "" {
			return nil
		}
	}
	lock := e.place(lease.Job)
	lock.Lock()
	defer lock.Unlock()
	if m.Body.(*protocol.Settlement).Committed && !m.Body.(*protocol.Settlement).Range.Empty() {
		first, err := e.firstLife(lease.Job)
		if err != nil {
			return err
		}
		if first > lease.Generation.Number() { // another life has the folders now
			return e.keep(dir, &lease)
		}
		err = e.publish(dir, &lease, m.Body.(*protocol.Settlement).Range)
		if errkind.Of(err) != errkind.Invalid {
			return err
		}
		e.o.Logger.Error("what counts of a subjob can't be published, and will not be the next time: it is set aside", "subjob", m.Token.String(),
			"err", err)
		return e.keep(dir, &lease)
	}
	if planted.In(planted.PublishLosers) {
		return e.publish(dir, &lease, lease.Range)
	}
	return e.keep(dir, &lease)
}

// publish moves what was committed to its place: the checkpoint first, because the next subjob waits for it.
func (e *Executor) publish(dir shim.Dir, l *shim.Lease, committed job.Range) error {
	path := e.s.member(l.Job, committed, l.Member)
	if l.Member == 0 { // of a gang the first member's checkpoint is the job's
		path = e.s.output(l.Job, committed)
		moved, err := move(dir.Checkpoint(), e.s.checkpoint(l.Job, l.Token), 0o711, l.Outlived(e.bootID))
		if err != nil {
			return err
		}
		if moved {
			if err = foreign.Seal(e.s.checkpoint(l.Job, l.Token)); err != nil {
				e.o.Logger.Warn("taking the right to write from a checkpoint", "subjob", l.Token.String(), "err", err)
			}
			e.dropCheckpoints(l.Job, l.Token)
		}
	}
	written, err := filled(dir.Output())
	if errors.Is(err, fs.ErrNotExist) { // moved before
		_, gone := os.Lstat(path)
		written, err = gone == nil, nil
	}
	if err != nil {
		return err
	}
	if written { // whose it is to be is known before it is there
		if err := os.MkdirAll(filepath.Dir(tokenFile(path)), 0o700); err != nil {
			return err
		}
		if l.Member > 0 { // its place is one folder deeper than those that move makes durable
			if err := shim.SyncDir(filepath.Dir(e.s.outputs(l.Job))); err != nil {
				return err
			}
		}
		if err := shim.WriteFile(tokenFile(path), []byte(l.Token.String()), 0o600); err != nil {
			return err
		}
	}
	if _, err := move(dir.Output(), path, 0o700, l.Outlived(e.bootID)); err != nil {
		return err
	}
	return e.moveLogs(dir, l)
}

// keep puts work that does not count aside for people to look at, if there is any.
func (e *Executor) keep(dir shim.Dir, l *shim.Lease) error {
	if res, err := dir.ReadResult(); err != nil || stowed(&res, l) {
		e.unstow(l.Job, l.Token)
	}
	any := false
	if e.o.KeepLost > 0 {
		for name, from := range map[string]string{"output": dir.Output(), "checkpoint": dir.Checkpoint()} {
			moved, err := move(from, filepath.Join(e.s.kept(l.Job, l.Token), name), 0o700, l.Outlived(e.bootID))
			if err != nil { // nothing hangs on it: it goes with its run directory
				e.o.Logger.Warn("what a subjob left that does not count is not kept", "subjob", l.Token.String(), "err", err)
			}
			any = any || moved
		}
	}
	if any {
		e.lost.add(e.s.kept(l.Job, l.Token))
	}
	return e.moveLogs(dir, l)
}

func (e *Executor) moveLogs(dir shim.Dir, l *shim.Lease) error {
	out, errs := LogPath(e.o.DataDir, l.Job, l.Token, false)
	var moved []string
	for _, log := range [][2]string{{dir.Stdout(), out}, {dir.Stderr(), errs}} {
		if info, err := os.Lstat(log[0]); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // nothing was written, the program replaced the log, or it was moved before
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(log[1]), 0o700), rename(log[0], log[1])); err != nil {
			return err
		}
		moved = append(moved, log[1])
	}
	if len(moved) > 0 {
		e.logs.add(moved...)
	}
	return nil
}

// filled says whether a directory holds something. Invalid: something else stands in its place.
func filled(path string) (bool, error) {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return false, errkind.Errorf(errkind.Invalid, "%s is no folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, err
}

// move renames a directory that holds something to a place whose parents are made with mode, and makes that durable. It
// says whether the directory is there afterwards: moved now or before. outlived: the machine was started anew since it was written.
// Then it may be in both places, where a file system keeps no order between directories, and what is in its place is whole.
func move(from, to string, mode os.FileMode, outlived bool) (bool, error) {
	any, err := filled(from)
	switch {
	case errors.Is(err, fs.ErrNotExist): // moved before, perhaps by a daemon that died before that was durable
		if _, err = os.Stat(to); err != nil {
			return false, nil //nolint:nilerr // there was nothing to move
		}
		err = shim.SyncDir(filepath.Dir(filepath.Dir(to)))
	case err != nil || !any:
		return false, err
	default:
		// The place must be on the disk before anything can be said to lie there, and the old one may go last.
		err = errors.Join(os.MkdirAll(filepath.Dir(to), mode), shim.SyncDir(filepath.Dir(filepath.Dir(to))))
		if err == nil {
			err = rename(from, to)
		}
		if outlived && (errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY)) {
			err = nil
		}
	}
	if err == nil {
		err = errors.Join(shim.SyncDir(filepath.Dir(to)), shim.SyncDir(filepath.Dir(from)))
	}
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	return true, nil
}

// rename moves what may be a subjob's, and have been made so that it can't be moved.
func rename(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrPermission) {
		foreign.Free(from)
		err = os.Rename(from, to)
	}
	return err
}

// dropCheckpoints removes a job's other generations once the newest is in place, except those that a subjob still reads.
func (e *Executor) dropCheckpoints(j job.ID, newest job.Token) {
	needed := map[string]bool{e.s.checkpoint(j, newest): true}
	e.mu.Lock()
	for _, r := range e.runs {
		r.mu.Lock()
		if r.result == nil {
			needed[r.lease.Resume] = true
			needed[e.s.checkpoint(j, r.work().Plan.Resume)] = true
		}
		r.mu.Unlock()
	}
	e.mu.Unlock()
	entries, err := os.ReadDir(e.s.checkpoints(j))
	if err != nil {
		return
	}
	for _, entry := range entries {
		if path := filepath.Join(e.s.checkpoints(j), entry.Name()); !needed[path] {
			// The name goes first: who finds the directory, after a crash or a store that took nothing, does this again.
			var err error
			if t, bad := job.ParseToken(entry.Name()); bad == nil {
				err = e.unstowCheckpoint(j, t)
			}
			if err == nil {
				err = foreign.Remove(path)
			}
			if err != nil {
				e.o.Logger.Warn("removing an old checkpoint", "path", path, "err", err)
			}
		}
	}
}
