//go:build unix

package inventory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// LockDir is where host locks lie: the same place for every user of a machine and for services with a private /tmp, never
// swept while the machine is up, and empty after a reboot.
const LockDir = "/dev/shm"

// Locks holds the host locks of some GPUs: no other daemon on this machine offers them meanwhile. The kernel releases them when the process
// ends, however it ends; children do not inherit them.
type Locks struct {
	mu    sync.Mutex
	files []*os.File
}

// Lock takes the host lock of every named GPU in dir, all of them or none. An error is of kind Conflict if another daemon
// holds one, and names each such GPU and the process that holds it. No GPUs are locked by nobody: the result holds
// nothing.
func Lock(dir string, gpus []string) (*Locks, error) {
	l := &Locks{}
	var taken []error
	for _, gpu := range slices.Compact(slices.Sorted(slices.Values(gpus))) {
		if gpu == "" || strings.ContainsAny(gpu, "/\x00") {
			return nil, errors.Join(errkind.Errorf(errkind.Invalid, "lock GPU %q: a GPU's name is not empty and has no slash", gpu),
				l.Release())
		}
		f, err := lockFile(filepath.Join(dir, "sluice-"+gpu+".lock"))
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			taken = append(taken, fmt.Errorf("%s is offered by another daemon on this machine: %w", gpu, err))
		case err != nil:
			return nil, errors.Join(fmt.Errorf("lock GPU %s: %w", gpu, err), l.Release())
		default:
			l.files = append(l.files, f)
		}
	}
	if len(taken) > 0 {
		err := fmt.Errorf("%w\nstop that daemon, or leave these GPUs out of this one's inventory", errors.Join(taken...))
		return nil, errors.Join(&errkind.Error{Kind: errkind.Conflict, Err: err}, l.Release())
	}
	return l, nil
}

// Release releases all of them. It may be called twice.
func (l *Locks) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, f := range l.files {
		err = errors.Join(err, f.Close()) // closing the last descriptor unlocks
	}
	l.files = nil
	return err
}

// lockFile opens and locks one file. The file stays when the lock goes: removing it would let two daemons hold locks on
// two files of one name.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, err
		}
		ours, err := claim(f, path)
		if ours {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// claim locks f and writes our process id into it for others to read. It is false without an error if somebody removed
// the file between open and lock, so that it is no longer the one that others see.
func claim(f *os.File, path string) (bool, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 64)) // for the message only
		return false, fmt.Errorf("%s, held by %s: %w", path, describeHolder(holder), err)
	}
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	seen, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, seen) {
		return false, nil
	}
	// The directory is everybody's: a name there may lead to somebody's file, or to a pipe.
	if st, ok := ours.Sys().(*syscall.Stat_t); err == nil && (!ours.Mode().IsRegular() || ok && st.Nlink > 1) {
		return false, errkind.Errorf(errkind.Denied, "%s is not a plain file of its own: somebody put it there; remove it", path)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// openLock opens the file, or makes it for everybody. The two are apart because kernels refuse O_CREAT on another
// user's file in a sticky directory (fs.protected_regular).
func openLock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue // another daemon was faster
		}
		if err == nil {
			err = f.Chmod(0o666) // past the umask: any user's daemon must be able to ask
		}
		return f, err
	}
}

func describeHolder(content []byte) string {
	if pid := strings.TrimSpace(string(content)); pid != "" {
		return "process " + pid
	}
	return "a process that has not said which"
}
