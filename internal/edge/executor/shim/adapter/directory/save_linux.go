package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A program that is killed together with its adapter, for want of memory or with its machine, would lose all that it has saved since its
// subjob began. So its directory is copied on the way, whenever the program has saved and left it alone since.

const (
	// apart is how far apart two copies are at least; share is the part of the time that may go into copying.
	apart = 10 * time.Second
	share = 20
	// looking is how often the program's directory is looked at.
	looking = 200 * time.Millisecond
	// quiet is how long nothing in the directory has changed if a program that was killed did not write to it.
	quiet = 2 * time.Second
)

// saver copies a program's directory on the way, from a goroutine of its own.
type saver struct {
	*gauge
	// from, to and total are the subjob's part of its job, room how many bytes it may leave, 0: any number; every is how far apart two
	// copies are at least.
	from, to, total int64
	room            int64
	every           time.Duration
	// next is when to look again, changed when what was copied last had changed, upTo how far that counts.
	next    time.Time
	changed time.Time
	upTo    int64
	// told is how far the program was said to be before the first copy.
	told int64
	// copies counts those that were begun; folder is the one that counts.
	copies int
	folder string
	// off: there is no room for copies.
	off bool
	// ctx ends what is being copied.
	ctx context.Context
}

// start has the directory copied on the way until stop is called, which returns when that is over.
func (s *saver) start() (stop func()) {
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.Background())
	s.next = time.Now().Add(min(time.Second, s.every))
	var over sync.WaitGroup
	over.Go(func() {
		again := time.NewTicker(looking)
		defer again.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-again.C:
			}
			if err := s.look(time.Now()); err != nil && s.ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "sluice: copying the checkpoint directory on the way, which is not tried again:", err)
				return
			}
		}
	})
	return func() { cancel(); over.Wait() }
}

// look copies the directory if it is time. Before the first copy it says how far the program is, which is shown and counts for nothing.
func (s *saver) look(now time.Time) error {
	if now.Before(s.next) {
		return nil
	}
	s.next = now.Add(min(time.Second, s.every))
	changed, holds, err := lastChange(s.dir)
	if err != nil {
		return nil //nolint:nilerr // the program removes files while they are looked at
	}
	reached, known := s.reached(changed)
	to := min(reached, s.to, s.total-1)
	if known && holds && !s.off && to > max(s.upTo, s.from) && now.Sub(changed) >= quiet && !changed.Equal(s.changed) {
		begun := time.Now()
		err = s.save(changed, reached, to)
		s.next = time.Now().Add(max(s.every, share*time.Since(begun)))
		return err
	}
	// Whoever is at the total needs no checkpoint any more, and is that by its exit status alone.
	if near := min(s.near(), s.to, s.total-1); s.folder == "" && near > max(s.told, s.from) {
		s.told = near
		return s.report(near, false)
	}
	return nil
}

// save makes a copy, and that the checkpoint if the program has left its directory alone meanwhile. What is killed on the way leaves the
// copy before, or a checkpoint that is further than what was said to count.
func (s *saver) save(changed time.Time, reached, to int64) error {
	if s.off = !s.fits(); s.off {
		return nil
	}
	s.copies++
	folder := kept + "-" + strconv.Itoa(s.copies)
	at := filepath.Join(s.checkpoint, folder)
	err := copyTree(s.ctx, s.dir, at)
	if after, _, failed := lastChange(s.dir); err != nil || failed != nil || !after.Equal(changed) {
		s.off = errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
		return s.forget(folder)
	}
	old := s.folder
	if err := s.point(folder, reached); err != nil {
		return err
	}
	s.folder, s.changed, s.upTo = folder, changed, to
	if err := s.report(to, true); err != nil {
		return err
	}
	return s.forget(old)
}

// forget removes a copy that does not count any more.
func (s *saver) forget(folder string) error {
	if folder == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(s.checkpoint, folder)) //sluice:trusted it runs as the subjob itself
}

// fits: a second copy is within what the subjob may leave, and within half of what the disk has free.
func (s *saver) fits() bool {
	var size int64
	err := filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error { //sluice:trusted it runs as the subjob itself
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	var disk unix.Statfs_t
	if err = errors.Join(err, unix.Statfs(s.checkpoint, &disk)); err != nil {
		return false
	}
	free := int64(disk.Bavail) * disk.Bsize //nolint:unconvert // its type depends on the processor
	return (s.room == 0 || size <= s.room/2) && size <= free/2
}
