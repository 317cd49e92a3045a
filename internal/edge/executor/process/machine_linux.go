package process

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/eviction"
	"sluice.dev/sluice/internal/edge/volume"
)

// A machine that has joined a cluster keeps room on its disk (Cluster.Owner): where others have some, a job must not fail for want of it
// here. What the head has as well is evicted, from time to time and when room is short; and while it is short all the same nothing is
// started.

const (
	// lookEvery is how often a machine looks whether room is short, roomEvery how often it makes some then, and tidyEvery how often it
	// asks what the head has still.
	lookEvery, roomEvery, tidyEvery = time.Second, 10 * time.Second, 10 * time.Minute
)

// leastRoom is how much of a file system must be free for a start. already: room was short at the last look, and a quarter more must be.
func leastRoom(size int64, already bool) int64 {
	least := volume.Ample(size)
	if already {
		least += least / 4
	}
	return least
}

// joinedShort is short for a machine that has joined, and nil for any other.
func joinedShort(o *Options, already bool) error {
	if o.Joined.Owner == "" {
		return nil
	}
	return short(o, already)
}

// short returns why nothing is started on a disk that is short of room, nil where there is some. already: room was short at the last look.
func short(o *Options, already bool) error {
	s, err := volume.LookOwn(o.DataDir)
	root := os.Geteuid() == 0
	least := leastRoom(s.Size, already)
	if err != nil || s.Size == 0 || s.Left(root) >= least && !s.Full(root) {
		return nil
	}
	what := fmt.Sprintf("less than %s of %s are free", volume.Bytes(least), volume.Bytes(s.Size)) // the same at every look
	if s.Left(root) >= least {
		what = "it holds no more files"
	}
	return fmt.Errorf("%s is short of room, and nothing is started on it: %s: make room, or give this machine a larger disk: %w",
		s.Name(o.DataDir), what, syscall.ENOSPC)
}

// disk is that of an executor's machine.
type disk struct{ e *Executor }

// keep keeps it tidy, and tells where room is short, until the executor is closed.
func (d *disk) keep() {
	e := d.e
	cache := eviction.Cache{
		Layout: e.s, Lives: e.lives, Store: e.artifacts, Originals: e.originals, Lost: &e.lost, Logs: &e.logs,
		InUse: d.begunFrom, Log: e.o.Logger,
	}
	ctx := e.artifacts.Context()
	was := false
	for tidy, room := time.Now(), time.Now(); ; {
		if now := time.Now(); !now.Before(tidy) {
			cache.Tidy(ctx)
			tidy = now.Add(tidyEvery)
		}
		err := joinedShort(&e.o, was)
		if now := time.Now(); err != nil && !now.Before(room) {
			cache.MakeRoom(ctx)
			room = now.Add(roomEvery)
			err = joinedShort(&e.o, was)
		}
		if was = err != nil; was {
			e.suspect(&protocol.Message{})
		}
		if executor.Pause(e.done, lookEvery) {
			return
		}
	}
}

// begunFrom are the checkpoints of a job that a subjob which is not over begins from, by their paths. A subjob is known before it looks for
// its checkpoint, which waits for the lock of the job's folders: who has that lock and finds a checkpoint unused may remove it.
func (d *disk) begunFrom(j job.ID) map[string]bool {
	e := d.e
	needed := map[string]bool{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		r.mu.Lock()
		if r.told.State().Result == nil {
			needed[r.lease.Resume] = true
			needed[e.s.Checkpoint(j, r.work().Plan.Resume)] = true
		}
		r.mu.Unlock()
	}
	return needed
}
