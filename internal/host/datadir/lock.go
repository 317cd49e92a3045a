package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

const lockName = "lock"

// lockPatience is how long to wait for a lock whose process is gone: a program that it was just starting holds the lock until its exec.
const lockPatience = 5 * time.Second

// lockDir takes the data directory for this process. The lock is the kernel's, so it is gone with the process however
// that ends; the file's content only says who holds it. The file is never removed.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		text, _ := io.ReadAll(io.NewSectionReader(f, 0, 64))
		pid := strings.TrimSpace(string(text))
		if n, bad := strconv.Atoi(pid); bad != nil || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || time.Since(begin) > lockPatience {
			return nil, errors.Join(errkind.Errorf(errkind.Conflict,
				"%s is in use by another daemon (pid %s): stop that one first, or give this one its own directory with --data", dir, pid),
				f.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil && !disk.Full(err) { // the kernel knows who holds the lock; the number is for people
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return f, nil
}
