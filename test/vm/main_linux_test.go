package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival/all"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// TestMain makes the program what it was started as: the supervisor, a subjob's program, the guest's first process, or a
// plain test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Await, supervisor.Supervise, supervisor.Probe, adapter.Verb:
			os.Exit(supervisor.Main(os.Args[1:]))
		case watch.Verb:
			os.Exit(watch.Main(os.Args[2:], all.Detect))
		case "program":
			os.Exit(program(os.Args[2], os.Args[3:]))
		}
	}
	if os.Getpid() != 1 {
		os.Exit(m.Run())
	}
	said := "passed"
	if err := boot(); err != nil {
		said = err.Error()
	} else if code := m.Run(); code != 0 {
		said = "failed"
	}
	fmt.Println("\n" + verdict + said)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// service is the guest's control group for Sluice, as a service manager makes it; this process is in its subgroup.
const service = "/sys/fs/cgroup/sluice.service"

// boot mounts what programs expect, and does what a service manager with Delegate= and DelegateSubgroup= does.
func boot() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"},
		{"cgroup2", "/sys/fs/cgroup"}} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	return errors.Join(
		os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory +pids"), 0o600),
		os.MkdirAll(filepath.Join(service, tree.DaemonGroup), 0o755),
		os.WriteFile(filepath.Join(service, tree.DaemonGroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600),
	)
}

// program is what the subjobs of these tests run.
func program(name string, args []string) int {
	switch name {
	case "anonymous": // memory of its own, all that there is, beside a child that got away
		detach(1)
		var all [][]byte
		for range 4096 {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			all = append(all, block)
		}
		return len(all) & 1
	case "tmpfs": // memory that is no process's: files of a file system without a disk
		f, err := os.Create(filepath.Join("/tmp", "fill-"+os.Getenv("SLUICE_SUBJOB")))
		if err != nil {
			return 2
		}
		_ = os.Remove(f.Name())
		block := []byte(strings.Repeat("x", 1<<20))
		for range 128 {
			if _, err := f.Write(block); err != nil {
				return 3
			}
		}
		return 0
	case "modest": // takes so many MiB and ends well
		n, _ := strconv.Atoi(args[0])
		block := make([]byte, n<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		time.Sleep(300 * time.Millisecond)
		return int(block[0]) - 1
	case "holds": // takes so many MiB, and keeps them
		n, _ := strconv.Atoi(args[0])
		block := make([]byte, n<<20)
		for i := 0; ; i = (i + 4096) % len(block) {
			if block[i]++; i == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	case "crowd": // many of them, one after the other
		for n, _ := strconv.Atoi(args[0]); n > 0; n-- {
			cmd := exec.Command("/proc/self/exe", "program", "sleep")
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				time.Sleep(time.Hour)
			}
		}
		return 0
	case "family": // children that got away, and none of them listens
		signal.Ignore(syscall.SIGTERM)
		detach(5)
		fmt.Println("up")
	}
	time.Sleep(time.Hour)
	return 1
}

// detach starts n programs in sessions of their own that ignore SIGTERM.
func detach(n int) {
	for range n {
		cmd := exec.Command("/proc/self/exe", "program", "sleep")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		signal.Ignore(syscall.SIGTERM)
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}
