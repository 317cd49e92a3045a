package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable makes the test program the first process of a machine, whose folder it names.
const insideVariable = "CLUSTER_INSIDE"

// endedFile, in a machine's folder, has a line for each time that its daemon ended by itself.
const endedFile = "ended"

// boot is the first process of a machine: it does what its standard input says to the daemon, buries what is orphaned, and starts a daemon
// that has ended by itself again, as a service manager does.
type boot struct {
	dir string
	log *os.File

	mu   sync.Mutex
	args []string // of the daemon that is to run; nil: none is
	pid  int      // 0: it does not
	gone *sync.Cond
}

// inside runs a machine until it is killed.
func inside(dir string) int {
	b := &boot{dir: dir}
	b.gone = sync.NewCond(&b.mu)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	err := b.prepare()
	if err == nil {
		b.log, err = os.OpenFile(filepath.Join(dir, "daemon.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	answer := func(err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("ok")
	}
	answer(err)
	if err != nil {
		return 1
	}
	go b.bury(children)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		what, rest, _ := strings.Cut(in.Text(), " ")
		answer(b.obey(what, rest))
	}
	return 0
}

// prepare makes what is mounted, and the name, this machine's own.
func (b *boot) prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// A machine that was switched on again has another boot.
	if err := unix.Mount(filepath.Join(b.dir, "boot_id"), "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("a boot of its own: %w", err)
	}
	groups, err := groupsAt()
	if err != nil {
		return err
	}
	if groups != "" {
		err := unix.Unmount(groups, unix.MNT_DETACH) // the kernel mounts a file system on itself no more than once
		if err == nil {
			err = unix.Mount("cgroup2", groups, "cgroup2", 0, "")
		}
		if err != nil {
			return fmt.Errorf("control groups of its own: %w", err)
		}
	}
	return unix.Sethostname([]byte(filepath.Base(b.dir)))
}

// obey does what the test says.
func (b *boot) obey(what, rest string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch what {
	case "start":
		if err := json.Unmarshal([]byte(rest), &b.args); err != nil {
			return err
		}
		return b.start()
	case "kill":
		b.args = nil
		if b.pid != 0 {
			_ = syscall.Kill(b.pid, syscall.SIGKILL) // it is a child that was not buried
		}
		for b.pid != 0 {
			b.gone.Wait()
		}
		return nil
	case "stop", "continue":
		if b.pid == 0 {
			return fmt.Errorf("no daemon runs")
		}
		return syscall.Kill(b.pid, map[string]syscall.Signal{"stop": syscall.SIGSTOP, "continue": syscall.SIGCONT}[what])
	}
	return fmt.Errorf("what is %q?", what)
}

// start runs the daemon. mu is held.
func (b *boot) start() (err error) {
	b.pid, err = syscall.ForkExec(b.args[0], b.args, &syscall.ProcAttr{
		Dir: b.dir, Env: os.Environ(), Files: []uintptr{0, b.log.Fd(), b.log.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return err
}

// bury waits for children.
func (b *boot) bury(children <-chan os.Signal) {
	for range children {
		for {
			var how syscall.WaitStatus
			b.mu.Lock() // so that a child that ends at once is known by then
			pid, err := syscall.Wait4(-1, &how, syscall.WNOHANG, nil)
			if pid > 0 && pid == b.pid {
				b.pid = 0
				b.gone.Broadcast()
				if b.args != nil {
					b.ended(how)
				}
			}
			b.mu.Unlock()
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}

// ended notes that the daemon has ended by itself, and starts it again soon. mu is held.
func (b *boot) ended(how syscall.WaitStatus) {
	if f, err := os.OpenFile(filepath.Join(b.dir, endedFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintf(f, "exit %d signal %d\n", how.ExitStatus(), how.Signal())
		_ = f.Close() // it is a note
	}
	time.AfterFunc(500*time.Millisecond, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.args != nil && b.pid == 0 {
			if err := b.start(); err != nil {
				fmt.Fprintln(b.log, "starting it again:", err)
			}
		}
	})
}

// groupsAt is where control groups of version 2 are mounted; empty: nowhere.
func groupsAt() (string, error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", nil
}
