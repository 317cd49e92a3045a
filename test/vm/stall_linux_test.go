package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
)

// TestGuestStallsAreHeard: a program that has more than its group may keep in memory is stalled on its pages again and again. The
// kernel's trigger (PSI) ends a long wait, and the next look has the stalls.
func TestGuestStallsAreHeard(t *testing.T) {
	guest(t)
	swap(t)
	kind, err := cgroup.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kind.Close() }()
	began := time.Now()
	var m survival.Memory
	sense := func() {
		t.Helper()
		if err := kind.Sense(time.Since(began), &m); err != nil {
			t.Fatal(err)
		}
	}
	sense()
	if m.Some != 0 || m.Full != 0 {
		t.Errorf("before anything stalls it says %+v", m)
	}
	g, err := tree.MakeGroup(tree.GroupIn(service, "stalls"), tree.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(g), "memory.high"), []byte("16M"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(string(g))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	cmd := exec.Command("/proc/self/exe", "program", "holds", "48")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Kill()
		_ = cmd.Wait()
		for until := time.Now().Add(5 * time.Second); g.Remove() != nil && time.Now().Before(until); time.Sleep(time.Millisecond) {
			continue
		}
	})
	const patience = 40 * time.Second
	started := time.Now()
	for {
		kind.Await(patience)
		waited := time.Since(started)
		if waited >= patience {
			t.Fatal("the kernel never said that anything stalls")
		}
		if sense(); m.Some > 0 {
			t.Logf("woken %v after the program began; stalled for %d of 1000 some, %d all", waited, m.Some, m.Full)
			return
		}
	}
}
