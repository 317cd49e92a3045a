package processes

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestOursByMark(t *testing.T) {
	run := func(env ...string) int {
		// The shell's child carries the mark only by inheritance.
		c := exec.Command("sh", "-c", "sleep 60 & echo $!; wait")
		c.Env = append(os.Environ(), env...)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Skip("no shell here: ", err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		line := make([]byte, 16)
		n, err := out.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		pid := 0
		for _, d := range strings.TrimSpace(string(line[:n])) {
			pid = 10*pid + int(d-'0')
		}
		t.Cleanup(func() {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		})
		return pid
	}
	if !Ours("s", run("SLUICE_SUBJOB=1-2")) {
		t.Error("a child of a subjob is not recognized")
	}
	if Ours("s", run("NOT_SLUICE_SUBJOB=1-2")) {
		t.Error("another process is taken for ours")
	}
	if Ours("s", 1<<30) {
		t.Error("a process that is not there is taken for ours")
	}
}
