package tree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAGroupThatWasLeftIsMadeAnew: the supervisor of a suspended subjob was killed, nobody settled it, and another one got the
// same number. What the kernel keeps of the old group must not be the new one's: in a frozen group nothing would ever run.
func TestAGroupThatWasLeftIsMadeAnew(t *testing.T) {
	base, _, _ := GroupBase()
	if base == "" {
		t.Skip("no control group of version 2 can be made here")
	}
	g := GroupIn(base, fmt.Sprintf("left-%d", os.Getpid()))
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	if _, err := MakeGroup(g, Bounds{Processes: 7}); err != nil {
		t.Fatal(err)
	}
	if err := g.write("cgroup.freeze", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeGroup(g, Bounds{}); err != nil {
		t.Fatal(err)
	}
	if g.Frozen() {
		t.Error("the new group is frozen, since the one before was")
	}
	if data, err := os.ReadFile(g.file("pids.max")); err == nil && string(data) != "max\n" {
		t.Errorf("the new group has the bound of the one before: %s", data)
	}
}

// TestAGroupInUseIsNobodyElses: a daemon in another pid namespace may have a supervisor of the same number. Who takes its group ends what
// is in it with its own subjob.
func TestAGroupInUseIsNobodyElses(t *testing.T) {
	base, _, _ := GroupBase()
	if base == "" {
		t.Skip("no control group of version 2 can be made here")
	}
	g, err := MakeGroup(GroupIn(base, fmt.Sprintf("used-%d", os.Getpid())), Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(string(g))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = dir.Close()
	if _, err := MakeGroup(g, Bounds{}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group in which somebody's process runs was taken: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
