package process_test

import (
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// TestAFileSystemThatCountsNothingIsNotFull: a job that fails there has failed.
func TestAFileSystemThatCountsNothingIsNotFull(t *testing.T) {
	b := newBench(t, onDisk(t, "size=0,nr_inodes=0"))
	var s syscall.Statfs_t
	must(syscall.Statfs(b.o.DataDir, &s))
	if s.Bavail != 0 {
		t.Skipf("skipped: it counts %d blocks", s.Bavail)
	}
	b.run(lease(time.Minute, "sh", "-c", "exit 3"), job.ExitFailed)
}
