package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// freezer makes a group in which SIGKILL waits: the freezer of cgroup v1 is the only way to such a process that a test
// has. It returns a function to freeze a process and one to let all go.
func freezer(t *testing.T) (freeze func(pid int), thaw func()) {
	dir := filepath.Join("/sys/fs/cgroup/freezer", fmt.Sprintf("sluice-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no freezer of cgroup v1 here: %v", err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		write("freezer.state", "THAWED")
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func(pid int) {
			write("cgroup.procs", strconv.Itoa(pid))
			write("freezer.state", "FROZEN")
		}, func() {
			write("freezer.state", "THAWED")
		}
}

func TestStuck(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		freeze, thaw := freezer(t)
		b.do(lease(time.Minute, "sh", "-c", "sleep 1000 & wait"))
		b.next(protocol.Started)
		var sleeper int
		b.await("the sleeper", func() bool {
			for _, pid := range living(b.o.DataDir) {
				if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(args), "sleep\x00") {
					sleeper = pid
				}
			}
			return sleeper != 0
		})
		freeze(sleeper)
		b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{}})
		if m := b.next(protocol.Stuck); !strings.Contains(m.Body.(*protocol.Reason).Text, "remain") {
			t.Errorf("stuck: %q", m.Body.(*protocol.Reason).Text)
		}
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		if found := b.open(); len(found) != 1 || !found[0].Stuck || found[0].Result != nil {
			t.Errorf("found %+v, want it stuck", found)
		}
		thaw()
		b.exited(job.Stopped)
		if left := living(b.o.DataDir); len(left) != 0 {
			t.Errorf("processes %v remain although the end was said", left)
		}
	})
}
