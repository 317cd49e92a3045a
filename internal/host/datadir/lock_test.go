package datadir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// A lock that a dead daemon's last child still has is waited for; one that a living process has is refused at once.
func TestALockOutlivesItsProcessForAMoment(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pid  int
		free bool
	}{{gone.ProcessState.Pid(), true}, {os.Getpid(), false}} {
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, lockName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = fmt.Fprintln(f, c.pid); err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.free {
			time.AfterFunc(30*time.Millisecond, func() { _ = f.Close() })
		}
		lock, err := lockDir(dir)
		if (err == nil) != c.free || err != nil &&
			(errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", c.pid))) {
			t.Errorf("of process %d: %v", c.pid, err)
		}
		if lock != nil {
			_ = lock.Close()
		}
		_ = f.Close()
	}
}
