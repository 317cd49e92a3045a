package soak

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestTheOracleSeesWhatStaysSuspended for too long, and nothing of what goes on in between.
func TestTheOracleSeesWhatStaysSuspended(t *testing.T) {
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	p := proc{pid: c.Process.Pid, token: "1-1"}
	signal := func(s syscall.Signal, stands bool) {
		t.Helper()
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		for range 10000 {
			if p.stands() == stands {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("after %v it is suspended: %v", s, !stands)
	}
	s, now := stillness{since: map[string]time.Time{}}, time.Now()
	look := func(after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if wrong := s.look([]proc{p}, now); len(wrong) != want {
			t.Fatalf("it says %v, want %d", wrong, want)
		}
	}
	look(0, 0)
	signal(syscall.SIGSTOP, true)
	look(time.Second, 0)
	look(longest, 0)
	signal(syscall.SIGCONT, false)
	look(time.Second, 0)
	signal(syscall.SIGSTOP, true)
	look(time.Second, 0)
	look(longest+time.Millisecond, 1)
	if s.stood != 2 {
		t.Errorf("it was suspended %d times, want 2", s.stood)
	}
}
