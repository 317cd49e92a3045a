package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// word is one line the init says to the supervisor, through descriptor 3.
type word struct {
	// Err: the command could not be started, and why.
	Err string
	// PID of the command as the init sees it, once it runs.
	PID int
	// Exited: the command ended with Code (-1: by Signal).
	Exited       bool
	Code, Signal int
	// MaxRSS in bytes is the most one process of the tree had resident; 0 if it is not known to be the tree's.
	MaxRSS int64
}

const wordFD = 3

// initialize is the init of a subjob: it starts the command, reaps what is orphaned, passes on how the command ended, and
// ends; in a pid namespace the kernel then ends the rest.
func initialize(dir shim.Dir) error {
	shim.SealDescriptors(wordFD)
	out := json.NewEncoder(os.NewFile(wordFD, "supervisor"))
	withstand(os.Getpid() == 1)
	command, err := start(dir)
	if err != nil {
		return out.Encode(word{Err: err.Error()})
	}
	if err = out.Encode(word{PID: command}); err != nil {
		return err
	}
	code, sig, err := reap(command)
	if err != nil {
		return err
	}
	return out.Encode(word{Exited: true, Code: code, Signal: sig, MaxRSS: maxRSS()})
}

// withstand lets this process live until the command ends, whatever is sent to it from below, and gives the command the usual signals.
// The kernel keeps from the init of a pid namespace every signal that it does not handle, but those of its own faults: it handles
// none, then. Elsewhere they are caught, and package os/signal makes of each a round trip between two threads.
func withstand(first bool) {
	all := append(deadly(), unheard()...)
	if !first {
		signal.Notify(make(chan os.Signal, 1), all...)
		return
	}
	var usual [4]uintptr // struct sigaction of the kernel: SIG_DFL, no flags, no mask
	for _, s := range all {
		if n, ok := s.(syscall.Signal); ok {
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&usual)), 0, 8, 0, 0)
		}
	}
}

// unheard are the signals that a supervisor ignores.
func unheard() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE}
}

// deadly are the signals that end or stop a Go program that does not ask for them, as far as they can be caught.
func deadly() []os.Signal {
	return []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
		unix.SIGSEGV, unix.SIGPIPE, unix.SIGTERM, unix.SIGSTKFLT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGSYS,
	}
}

// start prepares this process, whose settings the command inherits, and starts the command, whose number it returns.
func start(dir shim.Dir) (pid int, err error) {
	l, err := dir.ReadLease()
	if err != nil {
		return 0, err
	}
	if err = confine(dir, &l); err != nil {
		return 0, fmt.Errorf("preparing to start the command: %w", err)
	}
	path, err := lookPath(l.Command[0], l.WorkDir, l.Env)
	if err != nil {
		return 0, err
	}
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if planted.In(planted.OrphanTree) {
		sys.Pdeathsig = 0
	}
	if u := l.User; u != nil {
		sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	if pid, err = launch(path, l.Command, l.WorkDir, lastOfEach(l.Env), []*os.File{os.Stdout, os.Stderr}, sys); err != nil {
		return 0, explain(&l, path, err)
	}
	return pid, nil
}

// lastOfEach leaves of several entries of an environment with one name the last.
func lastOfEach(env []string) []string {
	seen := make(map[string]bool, len(env))
	all := make([]string, 0, len(env))
	for _, e := range slices.Backward(env) {
		if name, _, _ := strings.Cut(e, "="); !seen[name] {
			seen[name] = true
			all = append(all, e)
		}
	}
	slices.Reverse(all)
	return all
}

// confine takes from this process what the command must not have.
func confine(dir shim.Dir, l *shim.Lease) error {
	var errs []error
	if !l.Isolation.PIDNamespace { // orphans come here rather than to the machine's init
		errs = append(errs, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	}
	if l.Isolation.Proc {
		errs = append(errs, arrange(dir, l))
	}
	errs = append(errs,
		unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), // of this thread, which is the one that forks
		limit(unix.RLIMIT_CORE, 0),
	)
	if n := l.Limits.Processes; n > 0 && l.Isolation.UserNamespace && l.Isolation.KernelProcesses {
		errs = append(errs, limit(unix.RLIMIT_NPROC, uint64(n)+ownTasks)) // elsewhere it counts what is not the subjob's
	}
	if n := l.Limits.OpenFiles; n > 0 {
		errs = append(errs, limit(unix.RLIMIT_NOFILE, n))
	}
	unix.Umask(0o077)
	// When the machine itself is out of memory, a subjob goes before the daemon. Not being allowed to say so is no reason
	// not to run.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0o600)
	return errors.Join(errs...)
}

// limit sets a resource limit, not above what this process has.
func limit(resource int, n uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	n = min(n, now.Max)
	// Through package syscall: it stops restoring the open-file limit it found when the program started.
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n})
}

// lookPath finds a command as a shell in the work directory would, by the job's own PATH.
func lookPath(name, workDir string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(workDir, name)
		}
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			path = p
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // never run what happens to lie in the work directory
		}
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("command %q: not found in PATH=%s; give its full path, or ./%s for a file of the work directory", name, path, name)
}

// explain says why a command did not start.
func explain(l *shim.Lease, path string, err error) error {
	name := l.Command[0]
	_, statErr := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && statErr != nil && l.Isolation.Own && inOwnPlace(path):
		return fmt.Errorf("command %q: no file %s: a subjob has /tmp and /dev/shm of its own, empty at first: put the program into the work directory, or elsewhere", name, path)
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return fmt.Errorf("command %q: %s is there, but not its interpreter (first line), its loader, or the directory to start in", name, path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %q: no file %s", name, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("command %q: no permission to run %s; is it executable (chmod +x) for the user it runs as, and every directory above it open to that user?", name, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("command %q: %s is no program for this machine; a script needs a first line like #!/bin/sh", name, path)
	}
	return fmt.Errorf("command %q: %w", name, err)
}

// reap waits for all children until the command has ended.
func reap(command int) (code, sig int, err error) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR) || (err == nil && pid != command):
			continue
		case err != nil:
			return 0, 0, fmt.Errorf("waiting for the command: %w", err)
		case ws.Signaled():
			return -1, int(ws.Signal()), nil
		}
		return ws.ExitStatus(), 0, nil
	}
}

// maxRSS is the largest resident size of a reaped process. A child starts by sharing this process's memory, so a
// figure not above this process's own says nothing.
func maxRSS() int64 {
	var self, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) != nil || syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return 0
	}
	if children.Maxrss <= self.Maxrss {
		return 0
	}
	return children.Maxrss << 10
}
