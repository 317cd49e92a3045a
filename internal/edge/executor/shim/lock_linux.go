package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/volume"
)

// errHeld says that somebody else holds the lock: a supervisor lives, or an init that has not heard yet that it died.
var errHeld = errors.New("the run directory is locked: its supervisor lives, or what it began")

// Held says whether err of TryLock means that somebody holds the lock.
func Held(err error) bool { return errors.Is(err, errHeld) }

// Lock is the right to act on a run directory. Whoever holds it may look for a note, a fence or a result and act on it: nobody
// else can then write them.
type Lock struct {
	// note is shim.json, older the file that supervisors of older versions lock, where there is one.
	note, older *os.File
}

// TryLock takes the run directory's lock without waiting. The kernel gives it back when all who hold it have closed it or died.
func (d Dir) TryLock() (*Lock, error) {
	l := &Lock{}
	var err error
	if l.note, err = tryLock(d.Note(), os.O_RDWR|os.O_APPEND|os.O_CREATE); err != nil {
		return nil, err
	}
	if l.older, err = tryLock(d.OlderLock(), os.O_RDWR); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = l.note.Close()
		return nil, err
	}
	return l, nil
}

func tryLock(path string, how int) (*os.File, error) {
	f, err := OpenPlain(path, how, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return f, nil
}

// Close gives the lock back.
func (l *Lock) Close() error {
	err := l.note.Close()
	if l.older != nil {
		err = errors.Join(err, l.older.Close())
	}
	return err
}

// Share is the lock for a process that is to hold it too, as a descriptor from the given number on: it is given back when all have
// closed it.
func (l *Lock) Share(from int) (*os.File, error) {
	fd, err := unix.FcntlInt(l.note.Fd(), unix.F_DUPFD_CLOEXEC, from)
	if err != nil {
		return nil, fmt.Errorf("sharing the lock of a run directory: %w", err)
	}
	return os.NewFile(uintptr(fd), l.note.Name()), nil
}

// WriteNote adds a line to shim.json. The last one counts.
func (l *Lock) WriteNote(n *Note) error {
	line, err := json.Marshal(n)
	if err == nil {
		_, err = l.note.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", l.note.Name(), err)
	}
	return nil
}

// Removed says whether the run directory was removed meanwhile.
func (l *Lock) Removed() bool {
	var st unix.Stat_t
	return unix.Fstat(int(l.note.Fd()), &st) == nil && st.Nlink == 0
}

// Fence makes sure that nothing is ever started in the run directory. The caller holds the lock.
func (d Dir) Fence() error {
	err := putFile(d.Fenced(), []byte("nothing may start here any more\n"), 0o600)
	if volume.NoRoom(err) { // an empty one says the same, and takes no room
		var f *os.File
		if f, err = os.OpenFile(d.Fenced(), os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			err = f.Close()
		}
	}
	return err
}

// IsFenced says whether Fence was called.
func (d Dir) IsFenced() (bool, error) { return exists(d.Fenced()) }

// SetStuck writes or removes the mark that processes remain.
func (d Dir) SetStuck(text string) error {
	if text == "" {
		err := os.Remove(d.Stuck())
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	return putFile(d.Stuck(), []byte(text), 0o600)
}

// ReadStuck returns what SetStuck wrote, empty if nothing stands.
func (d Dir) ReadStuck() string {
	data, err := foreign.ReadFile(d.Stuck(), progressLimit)
	if err != nil {
		return ""
	}
	return string(data)
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
