package process_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// TestAFileSystemThatCountsNothingIsNotFull: a job that fails there has failed.
func TestAFileSystemThatCountsNothingIsNotFull(t *testing.T) {
	b := newBench(t, func(o *process.Options) {
		dir := t.TempDir()
		if err := syscall.Mount("sluice-test", dir, "tmpfs", 0, "size=0,nr_inodes=0"); err != nil {
			t.Skipf("skipped: a file system without a size can't be mounted here: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		})
		o.DataDir = dir
	})
	var s syscall.Statfs_t
	must(syscall.Statfs(b.o.DataDir, &s))
	if s.Bavail != 0 {
		t.Skipf("skipped: it counts %d blocks", s.Bavail)
	}
	must(os.Chmod(b.o.DataDir, 0o700))
	b.run(lease(time.Minute, "sh", "-c", "exit 3"), job.ExitFailed)
}
