package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
)

// newBirth writes down how the init of a subjob and its command are to begin. files are its descriptors: without the last, there is no
// control group.
func newBirth(dir shim.Dir, l *shim.Lease, files [groupFD + 1]*os.File) (*birth, error) {
	b := &birth{dir: dir, grouped: files[groupFD] != nil}
	b.surround(l.Isolation)
	for i, f := range files {
		if f != nil {
			b.files[i] = f.Fd()
		}
	}
	b.prepare.held = append(b.prepare.held, files)
	var err error
	if b.path, err = lookPath(l); err != nil {
		return nil, err
	}
	if err = b.prepare.confine(dir, l); err != nil {
		return nil, fmt.Errorf("preparing to start the command: %w", err)
	}
	b.command.settle(l)
	path, args := b.path, l.Command
	if l.Adapter.Given() {
		path = "/proc/self/exe" // this program, wherever it lies
		s := adapter.Settings{Adapter: l.Adapter, Root: dir.Work(), Grace: l.Grace, Total: l.Total, Bars: l.Bars, Room: l.OutputLimit}
		if args, err = s.Arguments(b.path, l.Command); err != nil {
			return nil, err
		}
	}
	b.program.exec(path, args, lastOfEach(l.Env))
	return b, nil
}

// surround gives the init its namespaces.
func (b *birth) surround(iso shim.Isolation) {
	s := &b.prepare
	s.next = lockFD + 1
	if b.grouped {
		s.next = groupFD + 1
	}
	b.command.next = s.next
	s.do("taking a name", unix.SYS_PRCTL, unix.PR_SET_NAME, s.text("sluice-init")) // its arguments are the supervisor's
	if !iso.PIDNamespace {
		return
	}
	b.spaces = unix.CLONE_NEWPID
	if iso.Proc {
		b.spaces |= unix.CLONE_NEWNS
		s.private = true
	}
	if iso.Own {
		b.spaces |= unix.CLONE_NEWIPC
	}
	if iso.UserNamespace {
		b.spaces |= unix.CLONE_NEWUSER
		uid, gid := os.Geteuid(), os.Getegid()
		s.put("/proc/self/setgroups", "deny")
		s.put("/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid))
		s.put("/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid))
	}
}

// confine takes from the init what the command must not have.
func (s *script) confine(dir shim.Dir, l *shim.Lease) error {
	if !l.Isolation.PIDNamespace { // orphans come here rather than to the machine's init
		s.do("becoming the reaper of orphans", unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1)
	}
	if l.Isolation.Proc {
		if err := s.arrange(dir, l); err != nil {
			return err
		}
	}
	s.do("giving up capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
	s.do("giving up privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	s.limit(unix.RLIMIT_CORE, 0)
	if heldByKernel(l) {
		s.limit(unix.RLIMIT_NPROC, uint64(l.Limits.Processes)+ownTasks)
	}
	if n := l.Limits.OpenFiles; n > 0 {
		s.limit(unix.RLIMIT_NOFILE, n)
	}
	s.do("setting the umask", unix.SYS_UMASK, uintptr(l.Umask.Mask()))
	return nil
}

// heldByKernel says whether a limit of the user's processes is one of the subjob's. Outside a user namespace it counts what is not the
// subjob's.
func heldByKernel(l *shim.Lease) bool {
	return l.Limits.Processes > 0 && l.Isolation.UserNamespace && l.Isolation.KernelProcesses
}

// settle gives the command its session, its user, its place and the usual signals.
func (s *script) settle(l *shim.Lease) {
	s.do("making a session", unix.SYS_SETSID)
	// When the machine itself is out of memory, a subjob is killed before the daemon. It runs even if this can't be set. Never set it for
	// the init, whose memory is the supervisor's.
	s.offer("/proc/self/oom_score_adj", "500")
	if u := l.User; u != nil {
		groups := slices.Concat(u.Groups, []uint32{0}) // never empty, so that it lies somewhere
		s.do("setting its groups", unix.SYS_SETGROUPS, uintptr(len(u.Groups)), s.pointer(unsafe.Pointer(&groups[0]), groups))
		s.do("setting its group", unix.SYS_SETGID, uintptr(u.GID))
		s.do("setting its user", unix.SYS_SETUID, uintptr(u.UID))
	}
	s.do("going to "+l.WorkDir, unix.SYS_CHDIR, s.text(l.WorkDir))
	// The supervisor ignores some signals, and whoever started all of this may ignore others.
	usual := new([4]uintptr) // struct sigaction of the kernel: SIG_DFL, no flags, no mask. It serves as an empty mask too
	at := s.pointer(unsafe.Pointer(usual), usual)
	for _, n := range signals() {
		s.do("resetting a signal", unix.SYS_RT_SIGACTION, uintptr(n), at, 0, 8)
	}
	s.do("letting signals through", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, at, 0, 8)
}

// exec is the start of a program.
func (s *script) exec(path string, args, env []string) {
	s.do("starting "+path, unix.SYS_EXECVE, s.text(path), s.texts(args), s.texts(env))
}

// signals are those that a program that was just started may find ignored, where somebody above it does so.
func signals() []syscall.Signal {
	all := []syscall.Signal{
		unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGTSTP, unix.SIGTTIN,
		unix.SIGTTOU, unix.SIGSYS, unix.SIGTERM,
	}
	for _, s := range unheard() {
		if n, ok := s.(syscall.Signal); ok {
			all = append(all, n)
		}
	}
	return all
}

// unheard are the signals that a supervisor ignores. SIGTERM it notes (told).
func unheard() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE}
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

// lookPath finds a command as a shell in the work directory would, by the job's own PATH. What lies where the subjob will have an
// empty place of its own is not there for it.
func lookPath(l *shim.Lease) (string, error) {
	name := l.Command[0]
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(l.WorkDir, name)
		}
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range l.Env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			path = p
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || l.Isolation.Own && inOwnPlace(dir+"/") {
			continue // never run what happens to lie in the work directory
		}
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("command %q: not found in PATH=%s; give its full path, or ./%s for a file of the work directory", name, path,
		name)
}

// explain says why a command did not start, by what the init said.
func (b *birth) explain(l *shim.Lease, said word) error {
	name, errno := l.Command[0], error(said.Errno)
	at := func(s *script) string { return s.calls[said.Where].what }
	switch {
	case said.Kind == unprepared:
		return fmt.Errorf("preparing to start the command: %s: %w", at(&b.prepare), errno)
	case said.Kind == unready:
		return fmt.Errorf("command %q: %s: %w", name, at(&b.command), errno)
	case said.Where < 0:
		return fmt.Errorf("command %q: making a process for it: %w", name, errno)
	}
	return explain(b.dir, l, b.path, errno)
}

func explain(dir shim.Dir, l *shim.Lease, path string, err error) error {
	name := l.Command[0]
	outside, hidden := fromOutside(dir, l, path)
	_, statErr := os.Stat(outside)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hidden:
		return fmt.Errorf("command %q: no file %s: a subjob has /tmp and /dev/shm of its own, empty at first: put the program into the "+
			"work directory, or elsewhere", name, path)
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return fmt.Errorf("command %q: %s is there, but not its interpreter (first line) or its loader", name, path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("command %q: no file %s", name, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("command %q: no permission to run %s; is it executable (chmod +x) for the user it runs as, and every "+
			"directory above it open to that user?", name, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("command %q: %s is no program for this machine; a script needs a first line like #!/bin/sh", name, path)
	}
	return fmt.Errorf("command %q: %w", name, err)
}

// fromOutside is where what a subjob has at a path lies as seen from outside. hidden: nowhere, since it has an empty place of its own
// there.
func fromOutside(dir shim.Dir, l *shim.Lease, path string) (outside string, hidden bool) {
	if rest, ok := strings.CutPrefix(path, l.Place(dir).Work()+"/"); ok && l.Base != "" {
		return filepath.Join(l.Base, rest), false
	}
	if !l.Isolation.Own || !inOwnPlace(path) {
		return path, false
	}
	return path, !slices.ContainsFunc(sights(seen(dir, l)),
		func(kept string) bool { return strings.HasPrefix(path, kept+"/") })
}

// ownTasks is room for the init where the kernel counts it with the subjob.
const ownTasks = 1
