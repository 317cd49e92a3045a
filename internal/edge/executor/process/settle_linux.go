package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/artifacts"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// settle moves the directories of an ended subjob to their places, and answers. Every step is idempotent, so a repeat continues where the
// last try stopped. It retries errors (a full disk) until it succeeds or the executor closes.
func (e *Executor) settle(m protocol.Message, answer func(protocol.Message)) {
	e.mu.Lock()
	r := e.runs[m.Token]
	e.mu.Unlock()
	if r != nil {
		if r.told.State().Result == nil {
			return // there is nothing to settle yet; the node asks again
		}
		r.settling.Lock()
		defer r.settling.Unlock()
	}
	for {
		if r != nil {
			r.after.TellBehind(r.told.State().Result)
		}
		err := e.settleOnce(m, r)
		if err == nil {
			break
		}
		e.o.Logger.Error("settling the directories of a subjob; trying again", "subjob", m.Token.String(), "err", err)
		if faults.OfNode(err) {
			e.suspect(&m)
		}
		if executor.Pause(e.done, time.Second) {
			return
		}
	}
	e.mu.Lock()
	if r != nil && e.runs[m.Token] == r {
		delete(e.runs, m.Token)
		e.past.Add(m.Token, r.told.State().Result)
	}
	e.settles++
	tidy := e.settles%100 == 1
	e.mu.Unlock()
	answer(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
	if tidy {
		e.rotateEvents()
		e.logs.Add() // what an earlier daemon kept may be more than this one is to keep
		e.lost.Add()
	}
}

func (e *Executor) settleOnce(m protocol.Message, r *run) error {
	dir := e.s.Run(m.Token)
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
	old := e.s.In("runs", ".old-"+m.Token.String())
	if err := folders.Rename(string(dir), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	done := over{path: old}
	if r != nil && r.lease.Stay == nil { // a program that stays may still have something open there
		done.room = r.room
	}
	select {
	case e.rooms.over <- done:
		return nil
	default: // the removing goroutine can't keep up: this bounds starts by removals
		return foreign.Remove(old)
	}
}

// clean removes settled run directories. Those left when the daemon ends are removed at the next start.
func (e *Executor) clean() {
	for {
		select {
		case <-e.done:
			return
		case old := <-e.rooms.over:
			if err := e.rooms.Done(old.path, old.room); err != nil {
				e.o.Logger.Warn("removing a run directory; it is tried again at the next start", "path", old.path, "err", err)
			}
		}
	}
}

// putAway moves everything worth keeping out of the run directory.
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
	lock := e.lives.Place(lease.Job)
	lock.Lock()
	defer lock.Unlock()
	if m.Body.(*protocol.Settlement).Committed && !m.Body.(*protocol.Settlement).Range.Empty() {
		first, err := e.lives.First(lease.Job)
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
		e.o.Logger.Error("what counts of a subjob can't be published, and will not be the next time: it is set aside", "subjob",
			m.Token.String(),
			"err", err)
		return e.keep(dir, &lease)
	}
	return e.keep(dir, &lease)
}

// publish moves what was committed to its place: the checkpoint first, because the next subjob waits for it.
func (e *Executor) publish(dir shim.Dir, l *shim.Lease, committed job.Range) error {
	path := e.s.Member(l.Job, committed, l.Member)
	if l.Member == 0 { // of a gang the first member's checkpoint is the job's
		path = e.s.Output(l.Job, committed)
		moved, err := folders.Move(dir.Checkpoint(), e.s.Checkpoint(l.Job, l.Token), 0o711, l.Outlived(e.o.BootID))
		if err != nil {
			return err
		}
		if moved {
			if err = foreign.Seal(e.s.Checkpoint(l.Job, l.Token)); err != nil {
				e.o.Logger.Warn("taking the right to write from a checkpoint", "subjob", l.Token.String(), "err", err)
			}
			e.dropCheckpoints(l.Job, l.Token)
		}
	}
	if e.o.Joined.Owner != "" { // the head's store has had it since before the result was told; it goes with its run directory
		return e.moveLogs(dir, l)
	}
	written, err := folders.Filled(dir.Output())
	if errors.Is(err, fs.ErrNotExist) { // moved before
		_, gone := os.Lstat(path)
		written, err = gone == nil, nil
	}
	if err != nil {
		return err
	}
	if written { // the owner is recorded before the file is in its place
		if err := os.MkdirAll(filepath.Dir(folders.TokenFile(path)), 0o700); err != nil {
			return err
		}
		if l.Member > 0 { // its place is one folder deeper than those that move makes durable
			if err := shim.SyncDir(filepath.Dir(e.s.Outputs(l.Job))); err != nil {
				return err
			}
		}
		if err := shim.WriteFile(folders.TokenFile(path), []byte(l.Token.String()), 0o600); err != nil {
			return err
		}
	}
	if _, err := folders.Move(dir.Output(), path, 0o700, l.Outlived(e.o.BootID)); err != nil {
		return err
	}
	return e.moveLogs(dir, l)
}

// keep puts work that does not count aside for people to look at, if there is any.
func (e *Executor) keep(dir shim.Dir, l *shim.Lease) error {
	if res, err := dir.ReadResult(); err != nil || artifacts.Counts(&res, l) {
		e.artifacts.Forget(l.Job, l.Token)
	}
	any := false
	if e.o.Retain.Lost > 0 {
		for name, from := range map[string]string{"output": dir.Output(), "checkpoint": dir.Checkpoint()} {
			moved, err := folders.Move(from, filepath.Join(e.s.Kept(l.Job, l.Token), name), 0o700, l.Outlived(e.o.BootID))
			if err != nil { // nothing depends on it: it is removed with its run directory
				e.o.Logger.Warn("what a subjob left that does not count is not kept", "subjob", l.Token.String(), "err", err)
			}
			any = any || moved
		}
	}
	if any {
		e.lost.Add(e.s.Kept(l.Job, l.Token))
	}
	return e.moveLogs(dir, l)
}

func (e *Executor) moveLogs(dir shim.Dir, l *shim.Lease) error {
	if e.o.Joined.Owner != "" && artifacts.LogsStored(dir) {
		return nil
	}
	out, errs := folders.LogPath(e.o.DataDir, l.Job, l.Token, false)
	var moved []string
	for _, log := range [][2]string{{dir.Stdout(), out}, {dir.Stderr(), errs}} {
		if info, err := os.Lstat(log[0]); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // nothing was written, the program replaced the log, or it was moved before
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(log[1]), 0o700), folders.Rename(log[0], log[1])); err != nil {
			return err
		}
		moved = append(moved, log[1])
	}
	if len(moved) > 0 {
		e.logs.Add(moved...)
	}
	return nil
}

// dropCheckpoints removes a job's other generations once the newest is in place, except those that a subjob still reads.
func (e *Executor) dropCheckpoints(j job.ID, newest job.Token) {
	needed := (&disk{e}).begunFrom(j)
	needed[e.s.Checkpoint(j, newest)] = true
	entries, err := os.ReadDir(e.s.Checkpoints(j))
	if err != nil {
		return
	}
	for _, entry := range entries {
		if path := filepath.Join(e.s.Checkpoints(j), entry.Name()); !needed[path] {
			// Remove the store's name for it first. If that fails, or we crash in between, the directory is still here, and the next
			// cleanup does both again.
			var err error
			if t, bad := job.ParseToken(entry.Name()); bad == nil {
				err = e.artifacts.ForgetCheckpoint(j, t)
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

// rotateEvents begins a new events file once the one that is written has its full size, and drops the one before it.
// Supervisors open it by name for every line; one that is just writing finishes its line in the old file.
func (e *Executor) rotateEvents() {
	path := folders.Events(e.o.DataDir)
	info, err := os.Stat(path)
	if err != nil || info.Size() < e.o.Retain.EventBytes {
		return
	}
	if err := os.Rename(path, folders.OldEvents(e.o.DataDir)); err != nil {
		e.o.Logger.Warn("beginning a new events file", "path", path, "err", err)
	}
}
