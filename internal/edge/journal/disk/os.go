package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// OS is the directory dir of the machine. Nothing is touched before the first call.
func OS(dir string) FS { return &directory{dir: dir} }

// directory is one directory. The holder of its lock keeps it open too, so that listing and syncing it need no file
// descriptor that there may not be.
type directory struct {
	dir  string
	held *os.File // while it is locked, else nil
}

func (d *directory) String() string          { return d.dir }
func (d *directory) path(name string) string { return filepath.Join(d.dir, name) }

func (d *directory) List() ([]string, error) {
	f := d.held
	if f == nil {
		var err error
		if f, err = os.Open(d.dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		defer f.Close()
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (d *directory) Open(name string) (File, error) { return open(d.path(name), os.O_RDWR) }
func (d *directory) View(name string) (File, error) { return open(d.path(name), os.O_RDONLY) }
func (d *directory) Create(name string) (File, error) {
	return open(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL)
}
func (d *directory) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d *directory) Remove(name string) error     { return os.Remove(d.path(name)) }
func (d *directory) Sync() error {
	if d.held != nil {
		return d.held.Sync()
	}
	return syncDir(d.dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (d *directory) Lock() (io.Closer, error) {
	if _, err := os.Stat(d.dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, err
		}
		if err := syncDir(filepath.Dir(d.dir)); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(d.path(LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := pidIn(f)
		_ = f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock %s: %w", d, err)
		}
		return nil, Held(d, holder)
	}
	// Who holds the lock is the kernel's knowledge; the number is for people, so it need not be synced.
	_ = f.Truncate(0)
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	if err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		_ = f.Close()
		return nil, err
	}
	held, err := os.Open(d.dir)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	d.held = held
	return &lock{d: d, file: f}, nil
}

// lock is a directory that is locked and held open.
type lock struct {
	d    *directory
	file *os.File
}

// Close closes both.
func (l *lock) Close() error {
	err := l.d.held.Close()
	l.d.held = nil
	return errors.Join(err, l.file.Close())
}

func (d *directory) Holder() int {
	f, err := os.Open(d.path(LockName))
	if err != nil {
		return 0
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return 0
	}
	return pidIn(f)
}

// Held is the error of a directory that process pid uses; -1 is a process nobody knows.
func Held(dir fmt.Stringer, pid int) error {
	who := "another process, whose id could not be read"
	if pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	return errkind.Errorf(errkind.Conflict, "%s is in use by %s: stop it, or use another directory", dir, who)
}

func pidIn(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return -1
	}
	return pid
}

type file struct{ *os.File }

func open(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Full says whether err means that there is no room: the disk, a quota or a limit on a file's size.
func Full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// Starved says whether err means that this process or this machine has no file descriptor, or no memory, for one more
// open file. Nothing was changed then.
func Starved(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
