package files

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep implements store.Store.
func (d *Dir) Sweep(_ context.Context, before time.Time) (n int, all error) {
	all = d.dir.retry("look for uploads that broke off", func() error {
		n = 0
		entries, err := os.ReadDir(d.dir.in(incoming))
		for _, e := range entries {
			path := d.dir.in(incoming, e.Name())
			gone, failed := d.sweepOne(path, before)
			if gone {
				n++
			}
			err = errors.Join(err, failed)
		}
		back, failed := os.ReadDir(d.dir.in(removing))
		for _, e := range back { // its remover may have been killed before it saw a renewal: the next collection decides anew
			failed = errors.Join(failed, ignoreMissing(d.restore(e.Name())))
		}
		return errors.Join(err, failed)
	})
	return n, all
}

// sweepOne removes what an upload has left that nobody has written to, and that nobody on this machine has locked.
func (d *Dir) sweepOne(path string, before time.Time) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.ModTime().Before(before) || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, err
	}
	err = os.Remove(path)
	return err == nil, ignoreMissing(err)
}
