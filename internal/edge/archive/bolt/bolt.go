// Package bolt keeps the archive in one file, a B+ tree of go.etcd.io/bbolt: pages are copied before they are written, so a crash leaves
// the tree as it was before or after a call. It opens without reading more than the free list, reads one job in some ten microseconds, and
// writes a batch with two syncs. What bbolt lacks is added here: every value has a checksum, damage of the tree's structure (a panic or a
// memory fault within bbolt) becomes an error, and a truncated file is refused. docs/adr/0022-archive.md has the reasons and the limits.
package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

const (
	// FileName is the archive's file in its directory.
	FileName = "jobs.db"
	// temporary is one that is being made; it is removed at the next start.
	temporary = "jobs.db.new"
)

// Open opens the archive in a directory, or makes an empty one where there is none; known: there must be one. Errors: Corrupt for
// a file that is damaged, cut or missing, Conflict for one that another process has open, Unsupported for one of a newer build, Exhausted.
func Open(dir string, known bool) (*Archive, error) {
	path := filepath.Join(dir, FileName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, kinded(fmt.Errorf("make the archive's directory: %w", err))
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known:
		return nil, errkind.Errorf(errkind.Corrupt, "archive %s is missing: %s", path, repair)
	case errors.Is(err, fs.ErrNotExist):
		err = create(dir)
	}
	if err != nil {
		return nil, kinded(fmt.Errorf("make the archive %s: %w", path, err))
	}
	a, err := open(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err = a.upgrade(); err == nil {
		err = a.check()
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func removeTemporary(dir string) error {
	if err := os.Remove(filepath.Join(dir, temporary)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an archive that was never finished: %w", err)
	}
	return nil
}

// create makes an empty archive that is whole once it has its name.
func create(dir string) error {
	a, err := begin(dir)
	if err != nil {
		return err
	}
	if err = a.Close(); err == nil {
		err = replace(dir)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir)) // the directory may have been made just now
}

// begin makes an empty archive under a temporary name.
func begin(dir string) (*Archive, error) {
	a, err := open(filepath.Join(dir, temporary), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	err = a.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets() {
			if _, failed := tx.CreateBucket([]byte(name)); failed != nil {
				return failed
			}
		}
		b := tx.Bucket([]byte(infoBucket))
		return errors.Join(b.Put([]byte(formatKey), []byte(format)), b.Put([]byte(totalsKey), sealTotals([]byte(totalsKey), totals{})))
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// replace gives the temporary file, which is whole and closed, the archive's name.
func replace(dir string) error {
	if err := os.Rename(filepath.Join(dir, temporary), filepath.Join(dir, FileName)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(durable.Sync(d), d.Close())
}

var errEmpty = errors.New("the file is empty")

// lockPatience is how long a lock is waited for. A daemon that is gone has it for a moment more: the file is in its memory, and that stays
// until a process that is reading there (/proc/PID/cmdline, as ps does) has done so.
const lockPatience = 2 * time.Second

// open opens a file of the store with the given flags, whatever is in it.
func open(path string, flag int) (*Archive, error) {
	a := &Archive{path: path}
	o := bbolt.Options{
		Timeout:      time.Millisecond, // a caller that waits for another opens it anew: it may have been replaced
		FreelistType: bbolt.FreelistMapType,
		ReadOnly:     flag&(os.O_WRONLY|os.O_RDWR) == 0,
		OpenFile: func(name string, _ int, mode os.FileMode) (f *os.File, err error) {
			// The store would make a file that is not there, and a tree in one that is empty.
			if a.file, err = os.OpenFile(name, flag, mode); err != nil || flag&os.O_CREATE != 0 {
				return a.file, err
			}
			if info, err := a.file.Stat(); err != nil || info.Size() == 0 {
				return nil, errors.Join(errEmpty, err, a.file.Close())
			}
			return a.file, nil
		},
	}
	attempt := func() (err error) {
		a.db, err = bbolt.Open(path, 0o600, &o)
		return err
	}
	err := guard(attempt)
	for begin := time.Now(); errors.Is(err, berrors.ErrTimeout) && time.Since(begin) < lockPatience; err = guard(attempt) {
		time.Sleep(10 * time.Millisecond)
	}
	switch {
	case err == nil:
		return a, nil
	case errors.As(err, new(*damage)):
		return nil, errors.Join(a.corrupt(err), a.abandon())
	case errors.Is(err, berrors.ErrTimeout):
		return nil, errkind.Errorf(errkind.Conflict, "archive %s is in use by another process: stop that one first", path)
	case errors.As(err, new(*fs.PathError)):
		return nil, kinded(fmt.Errorf("open the archive %s: %w", path, err))
	}
	return nil, a.corrupt(err)
}

// check looks at what must be right before anything else is: the file is as long as the tree is, and of this format.
func (a *Archive) check() error {
	return a.view(func(tx *bbolt.Tx) error {
		info, err := a.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return a.corrupt(fmt.Errorf("it was cut: it has %d bytes of %d", info.Size(), tx.Size()))
		}
		if got, ok := formatOf(tx); ok && got != format {
			return a.unknown(got)
		}
		for _, name := range buckets() {
			if tx.Bucket([]byte(name)) == nil {
				return a.corrupt(fmt.Errorf("it has no %q", name))
			}
		}
		_, err = a.totals(tx)
		return err
	})
}

// unknown refuses an archive of a format that this build does not know.
func (a *Archive) unknown(got string) error {
	return errkind.Errorf(errkind.Unsupported, "archive %s is of format %.40q, this build knows %q: use the build that wrote it; "+
		"nothing was changed", a.path, got, format)
}

// Size is archive.Archive's.
func (a *Archive) Size() (size archive.Size, err error) {
	err = a.view(func(tx *bbolt.Tx) error {
		t, damaged := a.totals(tx)
		size.Jobs, size.Homes, size.GivenUp, size.Changes, size.Bytes = t.jobs, t.homes, t.givenUp, t.changes, tx.Size()
		return damaged
	})
	if err == nil {
		s := a.db.Stats()
		size.Free = int64(s.FreePageN+s.PendingPageN) * int64(a.db.Info().PageSize)
	}
	return size, err
}

// Close is archive.Archive's. After damage in the middle of a change bbolt would wait for that change for ever: then only the file, and
// with it the lock, is closed.
func (a *Archive) Close() error {
	if a.ended.Load() != nil {
		return a.abandon()
	}
	return a.db.Close()
}

// abandon closes the file under a store that can't be closed. It goes on mapping it into memory, which would keep the lock.
func (a *Archive) abandon() error {
	return errors.Join(syscall.Flock(int(a.file.Fd()), syscall.LOCK_UN), a.file.Close())
}
