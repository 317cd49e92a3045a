package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// errHeld says that somebody else holds the lock: a supervisor lives.
var errHeld = errors.New("the run directory is locked: its supervisor lives")

// Held says whether err of TryLock means that somebody holds the lock.
func Held(err error) bool { return errors.Is(err, errHeld) }

// TryLock takes the run directory's lock without waiting. The kernel gives it back when the file is closed or its holder
// dies. Whoever holds it may look for a note, a fence or a result and act on it: nobody else can then write them.
func (d Dir) TryLock() (*os.File, error) {
	f, err := os.OpenFile(d.Lock(), os.O_RDWR|os.O_CREATE, 0o600)
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

// Fence makes sure that nothing is ever started in the run directory. The caller holds the lock.
func (d Dir) Fence() error {
	return putFile(d.Fenced(), []byte("nothing may start here any more\n"), 0o600)
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
