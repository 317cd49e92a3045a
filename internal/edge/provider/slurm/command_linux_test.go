package slurm

import (
	"bytes"
	"context"
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

// What a command says is kept up to a limit, and not in memory beyond it. It is written by package os/exec, which takes any short cut that
// its writer offers.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	for _, c := range []struct {
		size string
		good bool
	}{{"100000", true}, {"100001", false}, {"9000000", false}} {
		said := limited{left: 100_000}
		cmd := exec.Command("head", "-c", c.size, "/dev/zero")
		cmd.Stdout = &said
		if err := cmd.Run(); (err == nil) != c.good || len(said.String()) > 100_000 {
			t.Errorf("%s bytes: %d kept, %v: want it taken: %t", c.size, len(said.String()), err, c.good)
		}
	}
}

// A command that is ended leaves nothing of what it has started: sites wrap Slurm's commands in scripts.
func TestACommandIsEndedWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	script := fmt.Sprintf("#!/bin/sh\nsleep 600 &\necho $! >%s.new\nmv %s.new %s\nwait\n", left, left, left)
	if err := os.WriteFile(filepath.Join(dir, "squeue"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &commands{Options{Bin: dir, Timeout: time.Minute}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, err := c.run(ctx, "", nil, "squeue")
		done <- err
	}()
	var pid int
	for deadline := time.Now().Add(time.Minute); pid == 0; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(left); err == nil {
			if _, err = fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the command has started nothing")
		}
	}
	stop()
	if err := <-done; errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "squeue") {
		t.Errorf("%v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("what it has started is left: %s", stat)
		}
	}
}
